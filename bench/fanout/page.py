"""The README of a fan-out campaign: what follows first, then the tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.fanout.cells import QUESTIONS
from bench.fanout.chart import charts
from bench.fanout.measure import Outcome
from bench.fanout.results import (
    AIM_PER_CORE,
    RATE,
    STUDY,
    STUDY_PER_CORE,
    Results,
    ratio,
    spread,
    write,
)
from bench.findings import MISSING
from bench.pictures import shown, write_page
from bench.reference import websocket_fanout
from bench.spreads import Ratio, Spread, times
from bench.theme import Drawing

HUB_OVER_GROUP = "hub over group"
SOCKET_OVER_POLL = "WebSocket over long polling"
COMPARED = ("compare", "limit")
MANY = 1_000  # topics a user, as in the study


def publish(results: Results, folder: Path) -> None:
    """Write the data, the pictures and the page."""
    write(results, folder)
    drawings = charts(results)
    write_page(readme(results, drawings), drawings, folder)


def readme(results: Results, drawings: Sequence[Drawing]) -> str:
    """Return the whole page as Markdown; the pictures lie beside it."""
    lines = [
        *heading(results),
        *conclusions(results),
        *map(shown, drawings),
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
        "Losses are counted over all rounds, every other figure over the valid ones: "
        f"{discarded} of {len(results.outcomes)} measurements missed a gate. Raw data: "
        "`fanout.json` and `raw/`.\n"
    )


def conclusions(results: Results) -> Iterator[str]:
    """Yield what to conclude, drawn from the intervals; a quick run concludes nothing."""
    said = [
        *(said for question in COMPARED for said in _compared(results, question)),
        *_limit(results),
        *_losses(results),
    ]
    if said:
        yield "## What to conclude\n"
        yield from (f"- {one}" for one in said)
        yield ""


def _compared(results: Results, question: str) -> Iterator[str]:
    for (what, where), first, second in pairs(results, question):
        found = ratio(results, first, second, RATE)
        if found is None or found.interval is None:
            continue
        of = {
            HUB_OVER_GROUP: "a hub delivers {} as many records per server CPU-second as group_send",
            SOCKET_OVER_POLL: "WebSocket delivers {} as many records per server CPU-second as "
            "long polling",
        }[what]
        rate = first[0].rate
        same = rate is not None and rate == second[0].rate
        load = f"{rate:,.0f} messages/s" if same else "each near what it carries"
        late = _latency(results, first, second)
        yield f"{where}, {load}: {of.format(interval(found))}{late}."


def _latency(results: Results, first: Sequence[Outcome], second: Sequence[Outcome]) -> str:
    """Return the ratio of median latencies in words, where both sides had the same load."""
    found = ratio(results, first, second, "p50_ms")
    if found is None or found.interval is None or first[0].rate != second[0].rate:
        return ""
    return f", and at the median {interval(found)} as late"


def _limit(results: Results) -> Iterator[str]:
    for outcomes in results.cells("limit").values():
        one, found = outcomes[0], spread(outcomes, RATE)
        if one.subscriptions < MANY or one.transport != "websocket" or found is None:
            continue
        over = found.median / STUDY_PER_CORE
        yield (
            f"One process pushes {ranged(found)} records of {one.message_bytes:,} bytes per server "
            f"CPU-second to {one.users:,} users with {one.subscriptions:,} of {one.topics:,} "
            f"topics each: {over:.1f} times what the study reports for a core. The aim of "
            f"{AIM_PER_CORE:,} is {'reached' if found.median >= AIM_PER_CORE else '**missed**'}."
        )


def _losses(results: Results) -> Iterator[str]:
    for delivery, says in (("hub", "the hub"), ("group", "group_send")):
        told = [one for one in results.outcomes if one.delivery == delivery and not one.failure]
        due = sum(one.expected for one in told)
        if due:
            lost, twice, late = losses(told)
            yield (
                f"Of {due:,} records that were due to clients of {says}, {lost:,} were lost, "
                f"{twice:,} came twice and {late:,} out of order."
            )


def ratios(results: Results) -> Iterator[str]:
    """Yield hub over group, and WebSocket over long polling, on the same layer."""
    rows = [row for question in COMPARED for row in _ratio_rows(results, question)]
    if rows:
        yield "## Ratios\n"
        yield "Latencies are compared where both sides had the same load.\n"
        yield "| | under | deliveries per server CPU-second | median latency | p95 latency |"
        yield "|---|---|--:|--:|--:|"
        yield from rows
        yield ""


def _ratio_rows(results: Results, question: str) -> Iterator[str]:
    for (what, where), first, second in pairs(results, question):
        figures = [ratio(results, first, second, RATE), None, None]
        if first[0].rate == second[0].rate:
            figures[1:] = [ratio(results, first, second, name) for name in ("p50_ms", "p95_ms")]
        if any(figures):
            texts = [times(one) if one else MISSING for one in figures]
            yield f"| {what} ({where}) | {question} | {' | '.join(texts)} |"


def pairs(
    results: Results, question: str
) -> Iterator[tuple[tuple[str, str], list[Outcome], list[Outcome]]]:
    """Yield what is compared and where, with the outcomes of either side."""
    cells = list(results.cells(question).values())
    for first in cells:
        for second in cells:
            if named := compared(first[0], second[0]):
                yield named, first, second


def compared(first: Outcome, second: Outcome) -> tuple[str, str] | None:
    """Return what the two compare and where, if they differ in the one thing of interest."""
    load = ("users", "subscriptions", "topics", "message_bytes", "processes", "layer")
    if any(getattr(first, name) != getattr(second, name) for name in load):
        return None
    where = f"{first.layer}, {first.processes} process{'es' * (first.processes > 1)}"
    ways = (first.delivery, second.delivery, first.transport, second.transport)
    if ways[:2] == ("hub", "group") and first.transport == second.transport:
        return HUB_OVER_GROUP, f"{where}, {first.transport}"
    if ways[2:] == ("websocket", "polling") and first.delivery == second.delivery:
        many = f", {first.subscriptions:,} topics a user" if first.subscriptions >= MANY else ""
        return SOCKET_OVER_POLL, f"{where}, {first.delivery}{many}"
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
        "| MB/s | p50 ms | p95 ms | p99 ms | lost | twice | disordered | rounds | missed gates |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
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
    load = f"{one.users:,} x {one.subscriptions:,} of {one.topics:,}"
    wrong = sorted({gate.name for one in outcomes for gate in one.gates if not gate.ok})
    cells = (one.arm, load, f"{one.message_bytes:,}", *rates)
    valid = f"{sum(one.valid for one in outcomes)}/{len(outcomes)}"
    lost = (f"{count:,}" for count in losses(outcomes))
    return f"| {' | '.join((*cells, *lost, valid, ', '.join(wrong)))} |"


def losses(outcomes: Iterable[Outcome]) -> tuple[int, int, int]:
    """Return how many records were lost, came twice, and came out of order."""
    total: Counter[str] = Counter()
    for one in outcomes:
        total.update(one.counts)
    return total["lost"] + total["missing"], total["duplicated"], total["reordered"]


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


def interval(found: Ratio) -> str:
    """Return a ratio with its interval, in a sentence; it has one."""
    assert found.interval is not None
    low, high = found.interval.low, found.interval.high
    return f"**{found.estimate:.3g} times** (95 % interval {low:.3g} to {high:.3g})"
