"""The README of a run: how it was measured, how far the aims were reached, and everything."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.layers.aims import WORDS, Verdict, verdicts
from bench.layers.cell import Cell
from bench.layers.chart import drawings
from bench.layers.measures import (
    CAPACITY,
    GROUP_WINDOW,
    LOT,
    MEASURES,
    RATE_RPS,
    TURNS,
    WINDOW,
    Measure,
)
from bench.layers.peers import AGAIN, PEERS
from bench.layers.results import CPU, Results, losses, ratio, values, write
from bench.layers.ticks import SPIN_S
from bench.pictures import shown, write_page
from bench.provenance import described
from bench.spreads import INTERVAL_ROUNDS, Spread, spread, times
from bench.theme import Drawing


def publish(results: Results, folder: Path) -> None:
    """Write the data, the pictures and the page."""
    write(results, folder)
    drawn = drawings(results)
    write_page(readme(results, drawn), drawn, folder)


def readme(results: Results, drawn: Sequence[Drawing]) -> str:
    """Return the whole page as Markdown."""
    first, rest = drawn[:1], drawn[1:]
    lines = [
        *heading(results),
        *map(shown, first),
        "## Aims\n",
        "Beside the speed stands what a layer may not do for it: the rules that each of them keeps "
        "and breaks are in [the matrix](../../docs/channel-layers.md#the-matrix).\n",
        *aims_table(verdicts(results)),
        "",
        *against_itself(results),
        *map(shown, rest),
        *(line for measure in measured(results) for line in section(results, measure)),
    ]
    return "\n".join(lines) + "\n"


def heading(results: Results) -> Iterator[str]:
    machine, versions = results.provenance["machine"], results.provenance["versions"]
    named = ("python", "channels", "channels_redis", "redis", "redis-server", "uvloop")
    taken = {cell.round for cell in results.cells}
    thrown = sum(bool(cell.discarded) for cell in results.cells)
    yield "# Channel layers, measured by themselves\n"
    yield (
        f"{results.started}, commit {results.provenance['commit']}. {described(machine)}; "
        f"{', '.join(f'{name} {versions[name]}' for name in named if name in versions)}.\n"
    )
    if results.finished is None:
        yield "**Interrupted**: some rounds are missing.\n"
    yield (
        f"{len(taken)} of {results.rounds} rounds{' of short cells' * results.quick}, each with "
        "every measure on every layer once, measures and layers in shuffled order (seed "
        f"{results.seed}). A ratio is the median of the rounds' own ratios, with the least and the "
        f"greatest; from {INTERVAL_ROUNDS} rounds on with the interval of Hodges and Lehmann. "
        f"{thrown} of {len(results.cells)} attempts were discarded, because other processes used "
        "more than 3 % of a core, the hypervisor kept processors to itself, or the generator was "
        "late; they were measured again, and are in `layers.json` with their reasons."
    )
    yield from (f"Gone on with at {one}." for one in results.resumed)
    yield METHOD


METHOD = f"""
How, the same for every layer:

- **Processes**: each end is a process of its own, on a processor of its own; round trips back to
  back have both ends on one processor, because only one of them works at a time, and that is where
  the raw pipe is fastest. Group members run where the kernel puts them. redis-server may use every
  processor, without persistence, clients with `socket_timeout` None.
- **Round trips at {RATE_RPS}/s** leave on schedule, whatever the replies do, and count from the
  intended send. A timer wakes the sender {1e6 * SPIN_S:.0f} us early, and it spins for the rest:
  so it is some 3 us late (stated beside). At a low rate every process has been asleep, and waking
  up costs even a bare pipe (`raw`) several times what it takes back to back.
- **One way**: at most {WINDOW:,} messages are under way, where the capacity is {CAPACITY:,}. The
  reader says with a byte in a pipe, beside the layer, that another {LOT} have come. So no sender
  waits for a full channel, and Redis pub/sub, which has no bounds, is not filled without bounds.
  Groups go the same way, {GROUP_WINDOW} messages ahead of the slowest process.
- **Counts**: every message has a number. What was lost or came twice stands beside the speed, and
  a member that misses one of a group's messages shows as a loss.
- **CPU per message** is that of all processes, redis-server included, over messages received; not
  given at {RATE_RPS}/s, where the generator's timer is most of it.
- **raw** is a ping-pong over two pipes with no layer, under the same loop. **In-memory** has both
  ends in one process. **asgi_ipc 1.4.2** runs in an environment of its own.
- **interference**: two processes do round trips at {RATE_RPS}/s, a third with two busy threads is
  on the other processor: p99 while it uses the layer over p99 while it does not, {TURNS} turns of
  one and the other.
"""


def against_itself(results: Results) -> Iterator[str]:
    """Yield what two measurements of the same thing differ by."""
    found = [
        (measure.title, ratio(results, measure.name, (AGAIN, "ipc")))
        for measure in measured(results)
        if AGAIN in measure.peers
    ]
    if not any(one for _, one in found):
        return
    yield "## The same layer twice\n"
    yield (
        "channels_ipc is measured a second time in each round. Whatever lies nearer to 1 than "
        "these is no difference.\n"
    )
    yield "| measure | again over first, median (range) |"
    yield "|---|---|"
    yield from (f"| {title} | {times(one) or 'missing'} |" for title, one in found)
    yield ""


def aims_table(found: Sequence[Verdict]) -> Iterator[str]:
    yield "| aim | wanted | median (range) | |"
    yield "|---|---|---|---|"
    for verdict in found:
        yield (
            f"| {verdict.aim.title} | {verdict.aim.text} | {times(verdict.ratio)} "
            f"| {WORDS[verdict.reached]} |"
        )


def measured(results: Results) -> list[Measure]:
    taken = {cell.measure for cell in results.cells}
    return [measure for measure in MEASURES.values() if measure.name in taken]


def section(results: Results, measure: Measure) -> Iterator[str]:
    """Yield the table of one measure: a row a peer."""
    yield f"## {measure.title[0].upper()}{measure.title[1:]}\n"
    heads = ("layer", f"{measure.unit}, median (range)", "p99 µs", "sent late, µs")
    yield f"| {' | '.join(heads)} | ipc against it | CPU µs/message | sent | lost | twice |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for name in measure.peers:
        if results.of(measure.name, name):
            yield row(results, measure, name)
    yield ""
    yield from failures(results, measure)


def row(results: Results, measure: Measure, name: str) -> str:
    figure, p99, late, cpu = (
        spread(list(values(results, measure.name, name, key).values()))
        for key in (measure.figure, "p99_us", "lag_p50_us", CPU)
    )
    counted = losses(results, measure.name, name)
    against = None if name == "ipc" else ratio(results, measure.name, ipc_first(measure, name))
    cells = [
        PEERS[name].title,
        ranged(figure),
        "" if p99 is None else number(p99.median),
        "" if late is None else number(late.median),
        times(against),
        "" if cpu is None else number(cpu.median),
        *(("", "", "") if counted is None else (f"{one:,}" for one in counted)),
    ]
    return f"| {' | '.join(cells)} |"


def ipc_first(measure: Measure, name: str) -> tuple[str, str]:
    """Return the pair whose ratio is above 1 where ipc is better."""
    return ("ipc", name) if measure.higher_is_better else (name, "ipc")


def failures(results: Results, measure: Measure) -> Iterator[str]:
    """Yield a line for each layer that has rounds without a figure that counts."""
    for name in measure.peers:
        cells = results.of(measure.name, name)
        missing = {cell.round for cell in cells} - {cell.round for cell in cells if cell.counts}
        if missing:
            yield (
                f"- {PEERS[name].title}: **missing** in {len(missing)} of "
                f"{len({cell.round for cell in cells})} rounds: "
                f"{why_missing([cell for cell in cells if cell.round in missing])}"
            )
    yield ""


def why_missing(cells: Sequence[Cell]) -> str:
    """Return the reason of the last attempt in a line."""
    last = cells[-1]
    return last.failure.strip().splitlines()[-1] if last.failure else "; ".join(last.discarded)


def ranged(found: Spread | None) -> str:
    if found is None:
        return "missing"
    return f"{number(found.median)} ({number(found.low)} to {number(found.high)})"


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
