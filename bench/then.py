"""Then and now in words: 2016 as published, its software on this machine, and today's.

Every ratio is taken within a round, so each sentence has the interval of what was measured side by
side. In 2016 every request crossed the channel layer to a worker and back, so what stands beside
it is today's relayed request; the plain one, which no layer touches any more, stands beside both.
"""

from collections.abc import Iterator

from bench.cells import SERIES_BUCKET_S
from bench.figures import number
from bench.findings import times
from bench.history import OF_2016
from bench.reference import SETUPS_2016, Setup, throughput_2016
from bench.summary import Ratio, Summary
from bench.workloads import WORKLOADS


def sentences(summary: Summary) -> tuple[str, ...]:
    """Return what a reader should conclude; nothing where no software of 2016 took part."""
    said = (
        sentence
        for setup in SETUPS_2016
        for stack in OF_2016
        if f"{stack}-{setup.variant}" in summary.campaign.arms
        for sentence in _setup(summary, setup, stack)
    )
    # What is said of today's is the same beside either release of 2016's.
    return tuple(dict.fromkeys(said))


def _setup(summary: Summary, setup: Setup, stack: str) -> Iterator[str]:
    yield from _published(summary, setup, stack)
    arm = f"{stack}-{setup.variant}"
    if setup.variant == "gunicorn":
        partners = {"throughput": ("throughput", "the same request today")}
    else:
        partners = {
            "throughput": ("relay", "a request relayed over the layer today (the fair partner)"),
        }
    for test, (now_test, name) in partners.items():
        yield from _compared(summary, arm, test, setup.variant, now_test, name)
    if setup.variant != "gunicorn":
        plain = "a plain request today (which no layer touches)"
        yield from _compared(summary, arm, "throughput", setup.variant, "throughput", plain)
    yield from _latencies(summary, arm, setup.variant)
    yield from _hung(summary, arm, setup.variant)


def _published(summary: Summary, setup: Setup, stack: str) -> Iterator[str]:
    """Say what was published, and what the same gives here."""
    then = {row.variant: row.requests_per_5s for row in throughput_2016()}[setup.variant]
    arm = f"{stack}-{setup.variant}"
    cell = summary.cell(arm, "throughput") or summary.cell(arm, "minute")
    rate = cell.median("rps") if cell else None
    if rate is not None:
        yield (
            f"{setup.variant}: published were {then} requests per 5 s; {OF_2016[stack]}: "
            f"{number(rate * SERIES_BUCKET_S)}."
        )


def _compared(
    summary: Summary, arm: str, test: str, today: str, now_test: str, name: str
) -> Iterator[str]:
    found = summary.between(summary.cell(today, now_test), summary.cell(arm, test), "rps")
    if found is not None:
        yield f"{today}: {name} is answered {_said(found)} as often as one of {arm}{_end(found)}."


def _latencies(summary: Summary, arm: str, today: str) -> Iterator[str]:
    now_test = "latency" if today == "gunicorn" else "relay_latency"
    for figure, label in (("p50_ms", "median"), ("p99_ms", "99th percentile")):
        found = summary.between(summary.cell(today, now_test), summary.cell(arm, "latency"), figure)
        if found is not None:
            path = WORKLOADS[now_test].path
            yield (
                f"{today}: at 300 requests/s the {label} of {path} today is {_said(found)} that of "
                f"{arm}{_end(found)}."
            )


def _said(found: Ratio) -> str:
    """Return the ratio with its interval, or with how far the rounds range."""
    if found.interval:
        low, high = times(found.interval.low), times(found.interval.high)
        return f"{times(found.estimate)} times (95 % interval {low} to {high})"
    low, high = times(found.spread.low), times(found.spread.high)
    return f"{times(found.estimate)} times ({found.spread.n} rounds, {low} to {high})"


def _end(found: Ratio) -> str:
    return ": no difference can be told" if found.differs is False else ""


def _hung(summary: Summary, arm: str, today: str) -> Iterator[str]:
    """Say what became of the ten clients; a rate without those that hang would flatter."""
    for name in (arm, today):
        cell = summary.cell(name, "minute")
        if cell is None or cell.median("hung") is None or not cell.series:
            continue
        replies = [bucket.ok for bucket in cell.series]
        over = "" if today == "gunicorn" else ", over the channel layer"
        yield (
            f"{name}{over}, for a minute: {number(replies[0])} replies in the first 5 s and "
            f"{number(replies[-1])} in the last, {number(min(replies))} to {number(max(replies))} "
            f"in any (medians of the rounds); {cell.median('hung'):.0f} of "
            f"{WORKLOADS['minute'].concurrency} clients had no reply when it was over."
        )
