"""The README of a run: what was measured, and how far the aims were reached."""

from collections.abc import Iterator, Sequence

from bench.layers.aims import Verdict, verdicts
from bench.layers.measures import MEASURES, Measure
from bench.layers.peers import PEERS
from bench.layers.results import CPU, Ratio, Results, Spread, losses, ratio, spread, values

WORDS = {True: "reached", False: "**not reached**", None: "not measured"}


def readme(results: Results, charts: Sequence[str]) -> str:
    """Return the whole page as Markdown."""
    lines = [
        *heading(results),
        *(f"![{name}]({name}.svg)\n" for name in charts),
        "## Aims\n",
        *aims_table(verdicts(results)),
        "",
        *(line for measure in measured(results) for line in section(results, measure)),
    ]
    return "\n".join(lines) + "\n"


def heading(results: Results) -> Iterator[str]:
    machine = results.provenance["machine"]
    versions = results.provenance["versions"]
    named = ("python", "channels", "channels_redis", "redis", "redis-server", "uvloop")
    kind = "quick run, medians and ranges only" if results.quick else "intervals at 95 %"
    yield "# Channel layers, measured by themselves\n"
    yield (
        f"{results.started}, commit {results.provenance['commit']}, rounds: {results.rounds} of "
        f"{results.duration_s:g} s each ({kind}), order shuffled in each round. "
        f"{machine['cpu']}, {machine['usable_processors']} processors, {machine['kernel']}; "
        f"{', '.join(f'{name} {versions[name]}' for name in named if name in versions)}.\n"
    )
    if results.finished is None:
        yield "**Interrupted**: some rounds are missing.\n"
    yield (
        "Every message was counted; what was lost or came twice stands beside the speed. A ratio "
        "is the median of the rounds' own ratios, with the least and greatest. Redis runs on this "
        "machine without persistence, with `socket_timeout` None; `raw` is a ping-pong over two "
        "FIFOs with no layer. Latencies at 300/s count from the intended send. Raw data: "
        "`layers.json`.\n"
    )


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
    heads = ("layer", f"{measure.unit}, median (range)", "p99 µs", "ipc against it")
    yield f"| {' | '.join(heads)} | CPU µs/message | sent | lost | twice |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for name in measure.peers:
        if any((cell.measure, cell.peer) == (measure.name, name) for cell in results.cells):
            yield row(results, measure, name)
    yield ""
    yield from failures(results, measure)


def row(results: Results, measure: Measure, name: str) -> str:
    figure, p99, cpu = (
        spread(list(values(results, measure.name, name, key).values()))
        for key in (measure.figure, "p99_us", CPU)
    )
    counted = losses(results, measure.name, name)
    against = None if name == "ipc" else ratio(results, measure.name, ipc_first(measure, name))
    cells = [
        PEERS[name].title,
        ranged(figure),
        "" if p99 is None else number(p99.median),
        times(against),
        "" if cpu is None else number(cpu.median),
        *(("", "", "") if counted is None else (f"{one:,}" for one in counted)),
    ]
    return f"| {' | '.join(cells)} |"


def ipc_first(measure: Measure, name: str) -> tuple[str, str]:
    """Return the pair whose ratio is above 1 where ipc is better."""
    return ("ipc", name) if measure.higher_is_better else (name, "ipc")


def failures(results: Results, measure: Measure) -> Iterator[str]:
    for cell in results.cells:
        if cell.measure == measure.name and cell.failure:
            last = cell.failure.strip().splitlines()[-1]
            yield f"- {PEERS[cell.peer].title}, round {cell.round}: **missing**: {last}"
    yield ""


def ranged(found: Spread | None) -> str:
    if found is None:
        return "missing"
    return f"{number(found.median)} ({number(found.low)} to {number(found.high)})"


def times(found: Ratio | None) -> str:
    if found is None:
        return ""
    text = f"{found.spread.median:.3g}x ({found.spread.low:.3g} to {found.spread.high:.3g})"
    if found.interval is None:
        return text
    return f"{text}, 95 % [{found.interval.low:.3g}, {found.interval.high:.3g}]"


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
