"""The README of a fan-out campaign."""

from collections.abc import Iterable, Iterator, Sequence

from bench.fanout.cells import QUESTIONS
from bench.fanout.measure import Outcome
from bench.fanout.results import Results, ratio, spread
from bench.reference import websocket_fanout
from bench.spreads import Ratio, Spread

STUDY = "Rubris WebSocket baseline, 2016"
# 1,091,172 + 1,089,323 messages/s at two clients, on 12 busy server cores.
STUDY_PER_CORE = 182_000
AIM_PER_CORE = 400_000
RATE = "deliveries_per_server_cpu_s"


def readme(results: Results, charts: Sequence[str]) -> str:
    """Return the whole page as Markdown."""
    lines = [
        *heading(results),
        *(f"![{name}]({name}.svg)\n" for name in charts),
        *ratios(results),
        *floors(results),
        *(line for question in results.questions for line in section(results, question)),
        *study(),
    ]
    return "\n".join(lines) + "\n"


def heading(results: Results) -> Iterator[str]:
    machine, versions = results.provenance["machine"], results.provenance["versions"]
    named = ("python", "channels", "uvicorn", "uvloop", "websockets", "channels_redis", "picows")
    kind = "quick run, medians and ranges only" if results.quick else "intervals at 95 %"
    discarded = sum(not one.valid for one in results.outcomes)
    yield "# Fan-out: topics over WebSocket and long polling\n"
    yield (
        f"{results.started}, commit {results.provenance['commit']}, rounds: {results.rounds} "
        f"({kind}), order shuffled in each round. {machine['cpu']}, "
        f"{machine['usable_processors']} processors, {machine['kernel']}; "
        f"{', '.join(f'{name} {versions[name]}' for name in named if name in versions)}.\n"
    )
    if results.finished is None:
        yield "**Interrupted**: some rounds are missing.\n"
    yield (
        "Every record was counted and checked by its subscriber: size, topic, sequence. Latencies "
        "run from the publisher's clock to the check, over every record. Deliveries per server "
        "CPU-second count the whole server side: server processes and, where there is one, Redis. "
        f"{discarded} of {len(results.outcomes)} measurements missed a gate and stand marked. Raw "
        "data: `fanout.json` and `raw/`.\n"
    )


def ratios(results: Results) -> Iterator[str]:
    """Yield hub over group, and WebSocket over long polling, on the same layer."""
    rows = [row for question in ("compare", "limit") for row in pairs(results, question)]
    if rows:
        yield "## Ratios\n"
        yield "| deliveries per server CPU-second | under | median (range) |"
        yield "|---|---|--:|"
        yield from rows
        yield ""


def pairs(results: Results, question: str) -> Iterator[str]:
    cells = list(results.cells(question).values())
    for first in cells:
        for second in cells:
            named = compared(first[0], second[0])
            if named and (found := ratio(first, second, RATE)):
                yield f"| {named} | {question} | {times(found)} |"


def compared(first: Outcome, second: Outcome) -> str | None:
    """Return what the two compare, where they differ in the one thing that is of interest."""
    load = ("users", "subscriptions", "topics", "message_bytes", "processes", "layer")
    if any(getattr(first, name) != getattr(second, name) for name in load):
        return None
    where = f"{first.layer}, {first.processes} process{'es' * (first.processes > 1)}"
    ways = (first.delivery, second.delivery, first.transport, second.transport)
    if ways[:2] == ("hub", "group") and first.transport == second.transport:
        return f"hub over group ({where}, {first.transport})"
    if ways[2:] == ("websocket", "polling") and first.delivery == second.delivery:
        return f"WebSocket over long polling ({where}, {first.delivery})"
    return None


def floors(results: Results) -> Iterator[str]:
    if not results.floors:
        return
    rates = [one.messages_per_cpu_s(1_028) for one in results.floors]
    frame = results.floors[0].frame_bytes
    yield (
        f"The kernel alone, in the same rounds: a bare loop that writes {frame:,} bytes at a time "
        f"to {results.floors[0].sockets:,} loopback sockets moves {min(rates):,.0f} to "
        f"{max(rates):,.0f} messages of one KiB per CPU-second. That is the floor under any server "
        "on this machine.\n"
    )


def section(results: Results, question: str) -> Iterator[str]:
    """Yield the tables of one question."""
    cells = results.cells(question)
    if not cells:
        return
    yield f"## {QUESTIONS[question]}\n"
    if question == "idle":
        yield from idle(cells.values())
        return
    yield (
        "| variant | users x subscriptions of topics | bytes | deliveries/s | per server CPU-s "
        "| MB/s | p50 ms | p95 ms | p99 ms | lost | twice | disordered | |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    for outcomes in cells.values():
        yield row(outcomes)
    yield ""
    for outcomes in cells.values():
        yield from stages(outcomes)
        yield from failures(outcomes)


def row(outcomes: Sequence[Outcome]) -> str:
    one = outcomes[0]
    rates = (
        ranged(spread(outcomes, "deliveries_per_s")),
        ranged(spread(outcomes, RATE)),
        number(spread(outcomes, "bytes_per_s"), 1e-6),
        *(number(spread(outcomes, f"p{percent}_ms")) for percent in (50, 95, 99)),
    )
    counts = [sum(one.counts.get(name, 0) for one in outcomes) for name in LOSSES]
    lost = counts[0] + counts[1]
    load = f"{one.users:,} x {one.subscriptions:,} of {one.topics:,}"
    wrong = sorted({gate.name for one in outcomes for gate in one.gates if not gate.ok})
    cells = (one.arm, load, f"{one.message_bytes:,}", *rates)
    losses = (f"{lost:,}", f"{counts[2]:,}", f"{counts[3]:,}", ", ".join(wrong))
    return f"| {' | '.join((*cells, *losses))} |"


LOSSES = ("lost", "missing", "duplicated", "reordered")


def idle(cells: Iterable[list[Outcome]]) -> Iterator[str]:
    yield "| variant | sockets | refused | KiB a socket | all open after s |"
    yield "|---|--:|--:|--:|--:|"
    for outcomes in cells:
        one = outcomes[0]
        if one.rss_subscribed_bytes is None or one.rss_idle_bytes is None:
            reason = (one.failure or "nothing measured").splitlines()[0]
            yield f"| {one.arm} | failed: {reason} | | | |"
            continue
        grown = (one.rss_subscribed_bytes - one.rss_idle_bytes) / one.users / 1024
        open_s = one.ramp[-1]["ready_s"]
        refused = one.counts["refused"]
        yield f"| {one.arm} | {one.users:,} | {refused} | {grown:.1f} | {open_s:.2f} |"
    yield ""


def stages(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the sums of each stage, where one hub has seen everything."""
    for one in outcomes:
        if one.hub is None or one.failure or one.question not in ("churn", "limit"):
            continue
        told = (
            f"- {one.arm}, round {one.round}: {one.published:,} published, "
            f"{one.hub['received']:,} received by the hub, {one.hub['delivered']:,} given to "
            f"clients, {one.hub['dropped']:,} dropped; users who stayed were due "
            f"{one.expected:,} and got {one.counts['received']:,}"
        )
        if one.churned.get("visits"):
            told += (
                f"; {one.churned['visits']:,} visitors got {one.churned['received']:,} "
                f"({one.churned['lost']} holes, {one.churned['duplicated']} twice), and left "
                f"{one.hub['abandoned']:,} behind"
            )
        yield f"{told}."
    yield ""


def failures(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for one in outcomes:
        if one.failure:
            last = one.failure.strip().splitlines()[0]
            yield f"- {one.arm}, round {one.round}: **failed**: {last}\n"


def study() -> Iterator[str]:
    yield f"## The study of 2016\n\n{STUDY}: Java, 36 virtual processors, 12 of them busy.\n"
    yield "| users | transport | messages/s at each client | clients | server CPU % |"
    yield "|--:|---|---|--:|--:|"
    for one in websocket_fanout():
        cpu = "" if one.server_cpu_percent is None else f"{one.server_cpu_percent:g}"
        yield (
            f"| {one.users:,} | {one.transport} | {one.messages_per_s_per_instance} "
            f"| {one.client_instances} | {cpu} |"
        )
    yield f"\nThat is {STUDY_PER_CORE:,} messages/s for each of its server cores.\n"


def ranged(found: Spread | None) -> str:
    if found is None:
        return "missing"
    return f"{found.median:,.0f} ({found.low:,.0f} to {found.high:,.0f})"


def number(found: Spread | None, scale: float = 1.0) -> str:
    return "missing" if found is None else f"{found.median * scale:,.1f}"


def times(found: Ratio) -> str:
    text = f"{found.spread.median:.3g}x ({found.spread.low:.3g} to {found.spread.high:.3g})"
    if found.interval is None:
        return text
    return f"{text}, 95 % [{found.interval.low:.3g}, {found.interval.high:.3g}]"
