"""The README of a fan-out campaign: what follows first, then the tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from statistics import median

from bench.fanout.aims import MOST_P95_MS, is_many_sockets, serves, verdicts
from bench.fanout.cells import QUESTIONS, SEARCH
from bench.fanout.chart import charts
from bench.fanout.outcome import Outcome
from bench.fanout.pairs import HUB_OVER_GROUP, SOCKET_OVER_POLL, Pair, pairs
from bench.fanout.ramp import ramps
from bench.fanout.results import (
    RATE,
    STUDY,
    STUDY_PER_CORE,
    Results,
    ratio,
    spread,
    write,
)
from bench.fanout.stages import stages
from bench.fanout.words import interval, number, ranged
from bench.findings import MISSING
from bench.pictures import shown, write_page
from bench.provenance import described
from bench.reference import websocket_fanout
from bench.spreads import times
from bench.theme import Drawing

COMPARED = ("compare", "limit", "redis")
TITLES = QUESTIONS | {SEARCH: f"The most users of one process at a p95 of {MOST_P95_MS:g} ms"}
WORDS = {True: "reached", False: "**missed**", None: "not measured"}


def publish(results: Results, folder: Path) -> None:
    """Write the data, the pictures and the page."""
    write(results, folder)
    drawings = charts(results)
    write_page(readme(results, drawings), drawings, folder)


def readme(results: Results, drawings: Sequence[Drawing]) -> str:
    """Return the whole page as Markdown; the pictures lie beside it."""
    lines = [
        *heading(results),
        *aims(results),
        *conclusions(results),
        *map(shown, drawings),
        *sums(results),
        *ratios(results),
        *floors(results),
        *(line for question in results.questions for line in section(results, question)),
        *ramps(results),
        *study(),
    ]
    return "\n".join(lines) + "\n"


def _about(questions: Sequence[str]) -> str:
    """Return what the title says of a campaign about one question."""
    if len(questions) != 1:
        return ""
    title = TITLES[questions[0]]
    return f": {title[0].lower()}{title[1:]}"


def heading(results: Results) -> Iterator[str]:
    machine, versions = results.provenance["machine"], results.provenance["versions"]
    named = ("python", "channels", "uvicorn", "uvloop", "websockets", "channels_redis", "picows")
    kind = "quick run, medians and ranges only" if results.quick else "intervals at 95 %"
    discarded = sum(not one.valid for one in results.outcomes)
    yield f"# Fan-out: topics over WebSocket and long polling{_about(results.questions)}\n"
    yield (
        f"{results.started}, commit {results.provenance['commit']}, rounds: {results.rounds} "
        f"({kind}), order shuffled in each round. {described(machine)}; "
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


def aims(results: Results) -> Iterator[str]:
    if results.questions == (SEARCH,):
        return  # it has none
    yield "## Aims\n"
    yield "| aim | wanted | measured | |"
    yield "|---|--:|---|---|"
    for one in verdicts(results):
        yield f"| {one.aim} | {one.wanted} | {one.measured} | {WORDS[one.reached]} |"
    yield ""


def conclusions(results: Results) -> Iterator[str]:
    """Yield what to conclude, drawn from the intervals; a quick run concludes nothing."""
    said = [
        *(said for question in COMPARED for said in _compared(results, question)),
        *limit(results),
        *lost(results),
    ]
    if said:
        yield "## What to conclude\n"
        yield from (f"- {one}" for one in said)
        yield ""


def _compared(results: Results, question: str) -> Iterator[str]:
    for pair in pairs(results, question):
        found = ratio(results, pair.first, pair.second, RATE)
        if found is None or found.interval is None:
            continue
        of = {
            HUB_OVER_GROUP: "a hub delivers {} as many records per server CPU-second as group_send",
            SOCKET_OVER_POLL: "WebSocket delivers {} as many records per server CPU-second as "
            "long polling",
        }[pair.what]
        same = f"{pair.first[0].rate:,.0f} messages/s" if pair.same_load else ""
        load = same or "each near what it carries"
        late = _latency(results, pair)
        yield f"{pair.where}, {load}: {of.format(interval(found))}{late}."


def _latency(results: Results, pair: Pair) -> str:
    """Return the ratio of median latencies in words, where both sides had the same load."""
    found = ratio(results, pair.first, pair.second, "p50_ms")
    if found is None or found.interval is None or not pair.same_load:
        return ""
    return f", and at the median {interval(found)} as late"


def limit(results: Results) -> Iterator[str]:
    """Yield what one process pushes to users of as many topics as the study's."""
    for outcomes in results.cells("limit").values():
        one, found = outcomes[0], spread(outcomes, RATE)
        if not is_many_sockets(one) or found is None:
            continue
        over = found.median / STUDY_PER_CORE
        yield (
            f"One process pushes {ranged(found)} records of {one.message_bytes:,} bytes per server "
            f"CPU-second to {one.users:,} users with {one.subscriptions:,} of {one.topics:,} "
            f"topics each: {over:.1f} times what the study reports for a core. Of that time "
            f"{100 * kernel_share(outcomes):.0f} % is the kernel's, for copying and all else."
        )


def kernel_share(outcomes: Sequence[Outcome]) -> float:
    """Return how much of the servers' processor time went by in the kernel; the median."""
    used = [one.server for one in outcomes if one.valid and one.server]
    return median(each.cpu_system_s / each.cpu_s for each in used)


def lost(results: Results) -> Iterator[str]:
    """Yield what became of the records that were due, by hub and by group_send."""
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
    for pair in pairs(results, question):
        names = (RATE, "p50_ms", "p95_ms") if pair.same_load else (RATE,)
        figures = [ratio(results, pair.first, pair.second, name) for name in names]
        if any(figures):
            texts = [times(one) if one else MISSING for one in figures]
            texts += [MISSING] * (3 - len(texts))
            yield f"| {pair.what} ({pair.where}) | {question} | {' | '.join(texts)} |"


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
    yield f"## {TITLES[question]}\n"
    if question == SEARCH:
        yield from most_users([one for outcomes in cells.values() for one in outcomes])
    if question == "idle":
        yield from idle(cells.values())
        return
    yield (
        "| variant | users x subscriptions of topics | bytes | messages/s | deliveries/s "
        "| per server CPU-s "
        "| MB/s | p50 ms | p95 ms | p99 ms | lost | twice | disordered | rounds | missed gates |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    for outcomes in cells.values():
        yield row(outcomes)
    yield ""
    for outcomes in cells.values():
        yield from told(outcomes)
        yield from failures(outcomes)


def most_users(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield what the search has found, of the tries it made."""
    held = max(filter(serves, outcomes), key=attrgetter("users"), default=None)
    if held is None:
        yield "None of those tried was served.\n"
        return
    yield (
        f"**{held.users:,} users** were served, each with {held.subscriptions:,} of "
        f"{held.topics:,} topics, at {held.rate:,.0f} messages published a second: all came, once "
        f"and in order, the p95 was {held.p95_ms:.0f} ms.\n"
    )
    more = (one for one in outcomes if one.users > held.users)
    if failed := min(more, key=attrgetter("users"), default=None):
        late = "missing" if failed.p95_ms is None else f"{failed.p95_ms:.0f} ms"
        lost, twice, disordered = losses([failed])
        yield (
            f"{failed.users:,} were not: p95 {late}, {lost:,} lost, {twice:,} twice, "
            f"{disordered:,} out of order, missed gates: {missed_gates([failed]) or 'none'}.\n"
        )


def row(outcomes: Sequence[Outcome]) -> str:
    one = outcomes[0]
    rates = (
        ranged(spread(outcomes, "deliveries_per_s")),
        ranged(spread(outcomes, RATE)),
        number(spread(outcomes, "bytes_per_s"), 1e-6),
        *(number(spread(outcomes, f"p{percent}_ms")) for percent in (50, 95, 99)),
    )
    load = f"{one.users:,} x {one.subscriptions:,} of {one.topics:,}"
    published = "as many as go" if one.rate is None else f"{one.rate:,.6g}"
    cells = (one.arm, load, f"{one.message_bytes:,}", published, *rates)
    valid = f"{sum(one.valid for one in outcomes)}/{len(outcomes)}"
    lost = (f"{count:,}" for count in losses(outcomes))
    return f"| {' | '.join((*cells, *lost, valid, missed_gates(outcomes)))} |"


def missed_gates(outcomes: Iterable[Outcome]) -> str:
    return ", ".join(sorted({gate.name for one in outcomes for gate in one.gates if not gate.ok}))


def losses(outcomes: Iterable[Outcome]) -> tuple[int, int, int]:
    """Return how many records were lost, came twice, and came out of order."""
    total: Counter[str] = Counter()
    for one in outcomes:
        total.update(one.counts)
    return total["lost"] + total["missing"], total["duplicated"], total["reordered"]


def idle(cells: Iterable[list[Outcome]]) -> Iterator[str]:
    yield "| variant | sockets | refused | KiB a socket | open after s | rounds | missed gates |"
    yield "|---|--:|--:|--:|--:|--:|---|"
    for outcomes in cells:
        one = outcomes[0]
        figures = idle_figures([each for each in outcomes if each.valid])
        refused = sum(each.counts.get("refused", 0) for each in outcomes)
        valid = f"{sum(each.valid for each in outcomes)}/{len(outcomes)}"
        yield (
            f"| {one.arm} | {one.users:,} | {refused} | {figures} | {valid} "
            f"| {missed_gates(outcomes)} |"
        )
    yield ""
    for outcomes in cells:
        yield from failures(outcomes)


def idle_figures(outcomes: Sequence[Outcome]) -> str:
    """Return what a socket costs in memory, and when all were open; medians of the rounds."""
    grown = [
        (one.rss_subscribed_bytes - one.rss_idle_bytes) / one.users / 1024
        for one in outcomes
        if one.rss_subscribed_bytes is not None and one.rss_idle_bytes is not None
    ]
    if not grown:
        return f"{MISSING} | {MISSING}"
    open_s = median(one.ramp[-1]["ready_s"] for one in outcomes if one.ramp)
    return f"{median(grown):.1f} | {open_s:.2f}"


def sums(results: Results) -> Iterator[str]:
    """Yield whether what each stage counted agrees with what the next one did, and where not."""
    measured = [one for one in results.outcomes if not one.failure and one.expected]
    if not measured:
        return
    off = [(one, stage) for one in measured for stage in stages(one) if stage.off]
    hubs = sum(one.hub is not None for one in measured)
    yield "## Sums of the stages\n"
    yield (
        "Publishers, the channel layer, the hub and the subscribers count for themselves. "
        f"Subscribers' counts were compared with what was published in {len(measured):,} "
        f"measurements, and every stage with the next in {hubs:,}, where one process has the hub: "
        f"{'they **agree to the message**' if not off else f'**{len(off)} do not agree**'}.\n"
    )
    for one, stage in off:
        yield (
            f"- {one.cell}, round {one.round}, {stage.name}: off by **{stage.off:,}**: "
            f"{stage.came:,} came, and {stage.in_words}."
        )
    yield ""


def told(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield what each stage counted, where one hub has seen everything."""
    for one in outcomes:
        if one.hub is None or one.failure or one.question not in ("churn", "limit"):
            continue
        lines = [f"{stage.name} {stage.came:,}: {stage.in_words}" for stage in stages(one)]
        yield f"- {one.arm}, round {one.round}: {one.published:,} published; {'; '.join(lines)}."
        if one.churned.get("visits"):
            yield (
                f"  {one.churned['visits']:,} visitors among them got {one.churned['received']:,}, "
                f"with {one.churned['lost']:,} holes, {one.churned['duplicated']:,} twice and "
                f"{one.churned['reordered']:,} out of order."
            )
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
