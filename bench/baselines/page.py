"""The README of a campaign of baselines: what follows first, then the tables."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.baselines.chart import charts
from bench.baselines.claims import bounds, conclusions, twin
from bench.baselines.ladder import STOCK
from bench.baselines.results import Cell, Results, figure, ratio, short, underused, write
from bench.baselines.row import TABLES, Row
from bench.baselines.rows import ALONE, rows
from bench.figures import number
from bench.findings import MISSING, times
from bench.gates import CAPACITY_SHARE
from bench.pictures import shown, write_page
from bench.provenance import described
from bench.reference import framework_baseline
from bench.spreads import Spread
from bench.theme import Drawing

STUDY = "Maximum Throughput, 2012"
_NAMED = ("python", "Django", "channels", "uvicorn", "daphne", "granian", "gunicorn", "nginx")
_GENERATORS = {
    "wrk": "wrk, which keeps its connections ({} s)",
    "ab": "ab, which opens one for each request ({} s)",
}
_VERSIONS = (*_NAMED, "uwsgi", "node", "go", "wrk", "ab")


def publish(results: Results, folder: Path) -> None:
    """Write the data, the pictures and the page."""
    write(results, folder)
    drawings = charts(results)
    write_page(readme(results, drawings), drawings, folder)


def readme(results: Results, drawings: Sequence[Drawing]) -> str:
    """Return the whole page as Markdown; the pictures lie beside it."""
    lines = [
        *_heading(results),
        *_conclusions(results),
        *map(shown, drawings),
        *(line for table in TABLES for line in _section(results, table)),
        *_left_out(results),
    ]
    return "\n".join(lines) + "\n"


def _heading(results: Results) -> Iterator[str]:
    found = results.provenance
    machine, versions = found["machine"], found["versions"]
    pinning = found["pinning"]
    # By its usual generator a campaign needs no more words; beside one, another does.
    by = "" if "wrk" in results.seconds else f", by {results.generator}"
    yield f"# What each part costs before your own code runs{by}\n"
    kind = "quick, medians and ranges only" if results.quick else "intervals at 95 %"
    yield (
        f"{results.started}, commit {found['commit']}, {results.rounds} rounds ({kind}). "
        f"{described(machine)}; "
        f"server on processor {pinning['server'] or 'any'}, generator on "
        f"{pinning['generator'] or 'any'}. "
        + ", ".join(f"{name} {versions[name]}" for name in _VERSIONS if name in versions)
        + f". Command: `{' '.join(found['command'])}`\n"
    )
    if results.finished is None:
        yield "> **Interrupted**: it holds fewer rounds than it set out to.\n"
    if bad := short(results):
        said = "; ".join(f"{row} ({by}), {why}" for (row, by), why in bad.items())
        yield (
            "> **Too few rounds count for these rows, so do not rely on them; nothing is concluded "
            f"from them**: {said}.\n"
        )
    means = " and ".join(
        _GENERATORS[name].format(seconds) for name, seconds in results.seconds.items()
    )
    if len(results.seconds) > 1:
        means += f" (the figures are those of {results.generator} unless they say otherwise)"
    yield (
        "Every round starts every deployment once, in shuffled order, checks that it answers "
        f"with the right status, headers and body, warms it up, and measures it: by {means}. "
        "Every server is one process. CPU is that of everything that serves, nginx included, "
        "in microseconds for each reply. A measurement that fails a gate (failed, hung or "
        "wrong replies, dropped connections, a busy generator, foreign processes, steal) is "
        "repeated up to three times, and counts only if it passes. A ratio is taken within "
        "each round. A share of nginx alone is one of replies for each CPU second: as "
        "everything that serves has one processor, that is the share of what it can answer, "
        f"also where no generator keeps nginx alone busy. What “{STUDY}” published stands "
        "beside: one small virtual machine a side, fourteen years ago; compare the ratios, not "
        "the rates.\n"
    )


def _conclusions(results: Results) -> Iterator[str]:
    yield "## What to conclude\n"
    if results.quick:
        yield (
            "Nothing yet: this was a quick campaign. What it saw, as medians of the rounds' ratios:"
            "\n"
        )
    if (same := twin(results)) is not None:
        yield f"{same}\n"
    for head, sentences in conclusions(results).items():
        yield f"**{head}**\n"
        yield from (f"- {one}" for one in sentences)
        yield ""


def _section(results: Results, table: str) -> Iterator[str]:
    shown = [row for row in rows() if row.table == table and row.name in results.rows]
    if not shown:
        return
    yield f"## {TABLES[table]}\n"  # type: ignore[index]
    clients = {row.clients for row in shown}
    if len(clients) == 1:
        yield f"{clients.pop()} clients.\n"
    yield from _ladder(results, shown) if table == "ladder" else _table(results, shown)
    yield ""
    yield from _idle(results, shown)


def _idle(results: Results, shown: Sequence[Row]) -> Iterator[str]:
    """Say whose rate is not what the server can do."""
    idle = [row.title for row in shown if underused(results, row.name)]
    if idle:
        yield (
            f"The server was busy for less than {100 * CAPACITY_SHARE:.0f} % of the time in half "
            f"the rounds or more of: {'; '.join(idle)}. Those rates are what the clients and the "
            "generator managed to ask for; the server can answer more.\n"
        )


def _table(results: Results, shown: Sequence[Row]) -> Iterator[str]:
    # By clients, what they get is the question; elsewhere, what the server can do.
    compared, share = "rps_per_cpu_s", "share of nginx alone"
    if shown[0].table == "concurrency":
        compared, share = "rps", "requests/s, to 64 clients"
    then_alone = next(one.requests_rps for one in framework_baseline() if one.row == "nginx only")
    others = [name for name in results.seconds if name != results.generator]
    yield _line(
        *("", share, "in 2012", "requests/s (range)", "in 2012"),
        *("CPU µs, user", "system", "p99 ms"),
        *(f"{name}, requests/s" for name in others),
        "rounds",
    )
    yield "|---|" + "--:|" * (8 + len(others))
    for row in shown:
        then = row.then_rps
        yield _line(
            row.title,
            _ratio(results, row.name, ALONE, compared),
            MISSING if then is None else times(then / then_alone),
            _ranged(figure(results, row.name, "rps")),
            MISSING if then is None else number(then),
            *_cpu(results, row),
            _p99(figure(results, row.name, "p99_ms")),
            *(_ranged(figure(results, row.name, "rps", name)) for name in others),
            _rounds(results, row),
        )


def _ladder(results: Results, shown: Sequence[Row]) -> Iterator[str]:
    yield (
        "| | what it adds | trips to a thread | threads made | CPU, to stock "
        "| requests/s, to stock | CPU µs, user | system | requests/s (range) | rounds |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for row in shown:
        hops = results.hops.get(row.name, {})
        yield _line(
            row.title,
            row.why,
            str(hops.get("hops", MISSING)),
            str(hops.get("threads", MISSING)),
            _ratio(results, row.name, STOCK, "cpu_us"),
            _ratio(results, row.name, STOCK, "rps"),
            *_cpu(results, row),
            _ranged(figure(results, row.name, "rps")),
            _rounds(results, row),
        )
    yield ""
    yield (
        "On two processors a server shares the generator's where the machine has no third; its CPU "
        "for each reply is right all the same, its rate is not comparable."
    )


def _line(*texts: str) -> str:
    return f"| {' | '.join(texts)} |"


def _cpu(results: Results, row: Row) -> tuple[str, str]:
    return (
        _median(figure(results, row.name, "user_us")),
        _median(figure(results, row.name, "system_us")),
    )


def _ratio(results: Results, row: str, base: str, name: str) -> str:
    if row == base:
        return "1"
    found = ratio(results, row, base, name)
    return MISSING if found is None else f"{times(found.estimate)} ({bounds(found)})"


def _median(found: Spread | None) -> str:
    return MISSING if found is None else number(found.median)


def _p99(found: Spread | None) -> str:
    # ab counts whole milliseconds.
    return "< 1" if found is not None and not found.median else _median(found)


def _ranged(found: Spread | None) -> str:
    if found is None:
        return MISSING
    return f"{number(found.median)} ({number(found.low)} to {number(found.high)})"


def _rounds(results: Results, row: Row) -> str:
    found = figure(results, row.name, "rps")
    return f"{found.rounds if found else 0}/{results.rounds}"


def _left_out(results: Results) -> Iterator[str]:
    yield "## What was left out\n"
    yield from (f"- {row}: skipped, {why}" for row, why in results.skipped.items())
    discarded = [_reason(cell) for cell in results.cells if not cell.valid]
    if discarded:
        yield (
            f"\n<details><summary>{len(discarded)} of {len(results.cells)} attempts, each with the "
            "gate that it did not pass</summary>\n"
        )
        yield from discarded
        yield "\n</details>"
    elif not results.skipped:
        yield "Nothing: every measurement passed every gate."


def _reason(cell: Cell) -> str:
    place = f"{cell.row}, {cell.generator}, round {cell.round}, attempt {cell.attempt}"
    return f"- {place}: {cell.why_not}"
