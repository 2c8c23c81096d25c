"""Then and now in words: 2016 as published, its software on this machine, and today's.

Every ratio is taken within a round, so each sentence has the interval of what was measured side by
side. In 2016 every request crossed the channel layer to a worker and back, so what stands beside
it is today's relayed request; the plain one, which no layer touches any more, stands beside both.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.cells import SERIES_BUCKET_S, Cell, Spread, spread
from bench.figures import number
from bench.findings import times
from bench.history import OF_2016
from bench.intervals import Interval, ratio_interval
from bench.reference import SETUPS_2016, Setup, throughput_2016
from bench.summary import Summary, paired_ratios
from bench.workloads import WORKLOADS


@dataclass(frozen=True)
class Pair:
    """A figure of one cell to that of another, by rounds."""

    spread: Spread
    interval: Interval | None

    @property
    def text(self) -> str:
        """The ratio with its interval, or with how far the rounds range."""
        if self.interval:
            low, high = times(self.interval.low), times(self.interval.high)
            return f"{times(self.interval.estimate)} times (95 % interval {low} to {high})"
        low, high = times(self.spread.low), times(self.spread.high)
        return f"{times(self.spread.median)} times ({self.spread.n} rounds, {low} to {high})"

    @property
    def undecided(self) -> bool:
        return self.interval is not None and self.interval.contains(1.0)


def paired(above: Cell | None, below: Cell | None, figure: str, *, quick: bool) -> Pair | None:
    """Return ``figure`` of ``above`` over that of ``below``; None where no round has both."""
    if above is None or below is None:
        return None
    ratios = paired_ratios(above.spreads.get(figure), below.spreads.get(figure))
    if not ratios:
        return None
    return Pair(spread(ratios), None if quick else ratio_interval(list(ratios.values())))


def sentences(summary: Summary) -> tuple[str, ...]:
    """Return what a reader should conclude; nothing where no software of 2016 took part."""
    return tuple(
        sentence
        for setup in SETUPS_2016
        for stack in OF_2016
        if f"{stack}-{setup.variant}" in summary.campaign.arms
        for sentence in _setup(summary, setup, stack)
    )


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
            f"{setup.variant}: published were {then} requests per 5 s; {OF_2016[stack]}, answers "
            f"{number(rate * SERIES_BUCKET_S)}."
        )


def _compared(
    summary: Summary, arm: str, test: str, today: str, now_test: str, name: str
) -> Iterator[str]:
    found = paired(
        summary.cell(today, now_test), summary.cell(arm, test), "rps", quick=summary.quick
    )
    if found is None:
        return
    end = ": no difference can be told" if found.undecided else ""
    yield f"{today}: {name} is answered {found.text} as often as one of {arm}{end}."


def _latencies(summary: Summary, arm: str, today: str) -> Iterator[str]:
    now_test = "latency" if today == "gunicorn" else "relay_latency"
    for figure, label in (("p50_ms", "median"), ("p99_ms", "99th percentile")):
        found = paired(
            summary.cell(today, now_test), summary.cell(arm, "latency"), figure, quick=summary.quick
        )
        if found is not None:
            path = WORKLOADS[now_test].path
            end = ": no difference can be told" if found.undecided else ""
            yield (
                f"{today}: at 300 requests/s the {label} of {path} today is {found.text} that of "
                f"{arm}{end}."
            )


def _hung(summary: Summary, arm: str, today: str) -> Iterator[str]:
    """Say what became of the ten clients; a rate without those that hang would flatter."""
    for name in (arm, today):
        cell = summary.cell(name, "minute")
        if cell is None or cell.median("hung") is None or not cell.series:
            continue
        first, last = cell.series[0].ok, cell.series[-1].ok
        yield (
            f"{name}, over the channel layer for a minute: {number(first)} replies in the first "
            f"5 s and {number(last)} in the last; {cell.median('hung'):.0f} of "
            f"{WORKLOADS['minute'].concurrency} clients had no reply when it was over."
        )
