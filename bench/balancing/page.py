"""The README of a study: tables beside the published ones, what failed, and why tools differ."""

from collections import Counter
from collections.abc import Iterator, Sequence

from bench.balancing import published
from bench.balancing.cells import ECHO_STUDY, Column, EchoCell, HttpCell
from bench.balancing.conclusions import conclusions
from bench.balancing.figures import FIGURES, Ratio, Readings
from bench.balancing.reading import Study
from bench.balancing.remarks import ranged, remarks, rounding
from bench.cells import Spread
from bench.figures import number
from bench.pictures import shown
from bench.provenance import described
from bench.records import missed
from bench.spreads import INTERVAL_ROUNDS
from bench.theme import Drawing
from bench.tools import TOOLS
from bench.variants import SWARM_VARIANTS, VARIANTS

CAVEAT = (
    "The study had four cores for everything; machines, versions and years differ, so its figures "
    "are context and not a comparison of equals."
)
_GUNICORN = (
    "gunicorn's sync worker closes every connection after its reply, whatever was asked for: by "
    "itself it keeps none; behind a proxy it is the connection to the proxy that is kept.\n"
)
_CONNECTIONS = (
    "Connections per request are the kernel's count for the whole machine: a proxy's own to the "
    "application are among them.\n"
)
_EXPLAINED = {
    "opening": "handshakes that did not succeed; what their sockets should have sent is `dropped`",
    "sending": "sockets that went down with messages under way",
    "closing": "sockets that did not close in good order: every reply had come before",
    "dropped": "messages that never left, because their socket did not open or went down",
    "timeout": "no complete reply in time",
    "corrupt": "a message came back changed",
    "out of order": "a message came back after one that was sent later",
    "unasked": "a reply came that nobody waited for, such as one that came twice",
    "refused": "nobody listened, or the proxy had no application process left",
    "reset": "the connection was cut off",
    "closed early": "the connection ended before the reply did",
    "receive": "ab: the connection was cut off, or ended, before the reply did",
    "length": "ab: the reply was not as long as the first one",
    "exceptions": "ab: the same failures once more, as the poll saw them",
    "connect": "no connection could be made",
    "read": "wrk: a connection ended, after a reply or within one; wrk does not tell which",
    "status": "an answer with another status than 200; 502 to 504 are a proxy's own words",
    "closed": "the socket was closed with this code before all replies had come",
    "wrong body": "the answer was not what the application gives",
    "no local port left": "the machine had no port for another connection: nobody was asked",
    "error -1": "loadtest: refused, reset, timed out or a wrong status; it does not tell which",
}


def readme(study: Study, readings: Readings, drawings: Sequence[Drawing] = ()) -> str:
    """Return the whole page as Markdown; the pictures lie beside it."""
    lines = [
        *_heading(study),
        *_missing(study),
        *conclusions(study, readings),
        *(line for cell in study.cells for line in section(study, readings, cell)),
        *_resources(study, readings),
        *_errors(study, readings),
        *_disagreements(study, readings),
        *_left_out(readings),
        *map(shown, drawings),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _heading(study: Study) -> Iterator[str]:
    machine, versions = study.provenance["machine"], study.provenance["versions"]
    named = ("python", "Django", "gunicorn", "daphne", "uvicorn", "nginx", "haproxy", "apache2")
    kind = "intervals at 95 %" if study.rounds >= INTERVAL_ROUNDS else "medians and ranges"
    yield f"# {study.title}\n"
    yield (
        f"{study.started}, commit {study.provenance['commit']}, rounds: {study.rounds} ({kind}), "
        f"columns in an order shuffled for each round. {described(machine)}; "
        f"{', '.join(f'{name} {versions[name]}' for name in named if name in versions)}.\n"
    )
    yield (
        f"**Cores: {study.server_cores} for the server, {study.generator_cores} for the "
        "generator.** "
        + (
            "Four processes on fewer than four cores cannot show the gain that they have on four: "
            "the figures to compare are replies per second of server CPU, and the errors.\n"
            if study.server_cores < 4
            else "\n"
        )
    )
    if study.reference:
        yield f"Beside each figure stands that of the {study.reference}. {CAVEAT}\n"
    if study.kind == "http":
        yield _CONNECTIONS
    if study.finished is None:
        yield "**Interrupted**: some rounds are missing.\n"


def _missing(study: Study) -> Iterator[str]:
    if study.missing:
        yield "Not measured:\n"
        yield from (f"- {name}: {reason}" for name, reason in study.missing.items())
        yield ""


def section(study: Study, readings: Readings, cell: HttpCell | EchoCell) -> Iterator[str]:
    """Yield the table of one cell: a column each, and for each tool its rows."""
    columns = study.columns
    yield f"## {heading(cell)}\n"
    if isinstance(cell, HttpCell) and cell.keepalive and any(map(_is_gunicorn, columns)):
        yield _GUNICORN
    yield f"| | {' | '.join(column.name for column in columns)} |"
    yield f"|---|{'--:|' * len(columns)}"
    for tool in study.tools:
        if any((one.cell, one.tool) == (cell.name, tool) for one in readings.all):
            yield from _rows(readings, columns, cell, tool, prefix=len(study.tools) > 1)
    yield ""


def _is_gunicorn(column: Column) -> bool:
    variant = (VARIANTS | SWARM_VARIANTS).get(column.variant)
    return variant is not None and variant.server == "gunicorn"


def heading(cell: HttpCell | EchoCell) -> str:
    if isinstance(cell, EchoCell):
        view = ": all open, then all send, then all close" if cell.detail else ""
        return f"{cell.messages} messages via {cell.connections} connections{view}"
    kept = "connections kept" if cell.keepalive else "a connection for each request"
    if cell.requests == 0:
        return f"`wrk -t4 -c{cell.clients} -d{cell.seconds}s`, {kept}"
    part = f"{cell.sent:,} of the study's " if cell.sent < cell.requests else ""
    return f"{cell.clients} clients, {part}{cell.requests:,} requests, {kept}"


def _rows(
    readings: Readings,
    columns: Sequence[Column],
    cell: HttpCell | EchoCell,
    tool: str,
    *,
    prefix: bool,
) -> Iterator[str]:
    said = f"{tool}: " if prefix else ""
    unit = "messages/s" if isinstance(cell, EchoCell) else "requests/s"
    first = columns[0]
    if len(columns) > 1:
        yield _row(
            f"{said}**times {first.name}**",
            _ratios(readings, columns, cell.name, tool, "rps"),
        )
        yield from _unless_empty(
            f"{said}**times {first.name}, per server-CPU-second**",
            _ratios(readings, columns, cell.name, tool, "per_cpu_s"),
        )
        base = published.rate(cell, tool, first)
        ratios = [published.ratio(published.rate(cell, tool, one), base) for one in columns]
        yield from _unless_empty(f"{said}published, times {first.name}", ratios)
    yield _row(f"{said}{unit}", _spreads(readings, columns, cell.name, tool, "rps"))
    yield from _unless_empty(
        f"{said}published", [published.text(published.rate(cell, tool, one)) for one in columns]
    )
    yield from _unless_empty(
        f"{said}per server-CPU-second", _spreads(readings, columns, cell.name, tool, "per_cpu_s")
    )
    if isinstance(cell, HttpCell):
        connections = _spreads(readings, columns, cell.name, tool, "connections")
        yield from _unless_empty(f"{said}{FIGURES['connections'].label}", connections)
    elif cell.detail:
        yield from _phases(readings, columns, cell, tool)
    yield _row(f"{said}errors", [error_text(readings, cell.name, tool, one) for one in columns])
    yield from _unless_empty(
        f"{said}published errors",
        [published.text(published.errors(cell, tool, one)) for one in columns],
    )


def _ratios(
    readings: Readings, columns: Sequence[Column], cell: str, tool: str, figure: str
) -> list[str]:
    first = columns[0].name
    return [ratio_text(readings.ratio(cell, tool, (one.name, first), figure)) for one in columns]


def _phases(
    readings: Readings, columns: Sequence[Column], cell: EchoCell, tool: str
) -> Iterator[str]:
    yield _row("connects/s", _spreads(readings, columns, cell.name, tool, "connects"))
    if (cell.messages, cell.connections) == (1, 400):
        said = [published.text(published.connects(one)) for one in columns]
        yield from _unless_empty("published connects/s", said)
    yield _row("closes/s", _spreads(readings, columns, cell.name, tool, "closes"))


def _resources(study: Study, readings: Readings) -> Iterator[str]:
    """Yield what each column used at most, over all cells and rounds."""
    columns = study.columns
    yield "## Resources\n"
    yield f"| | {' | '.join(column.name for column in columns)} |"
    yield f"|---|{'--:|' * len(columns)}"
    for name in ("cpu_max", "pss_mb", "processes"):
        yield _row(FIGURES[name].label, [_most(readings, one.name, name) for one in columns])
        if study.reference:
            unit = " (%)" if name == "cpu_max" else ""
            echo = study.reference == ECHO_STUDY
            said = [published.text(published.resource(name, one, echo=echo)) for one in columns]
            yield from _unless_empty(f"published{unit}", said)
    yield ""
    yield (
        "The highest of any cell and round. Memory is PSS, read right after a load. Of a server of "
        "one's own nothing is known.\n"
    )


def _most(readings: Readings, column: str, figure: str) -> str:
    values = [
        value
        for one in readings.all
        if one.column == column and one.valid
        if (value := FIGURES[figure].value(one)) is not None
    ]
    return number(max(values)) if values else "–"


def _errors(study: Study, readings: Readings) -> Iterator[str]:
    kinds = sorted(
        {
            kind
            for cell in study.cells
            for tool in study.tools
            for column in study.columns
            for kind in readings.errors(cell.name, tool, column.name) or ()
        }
    )
    yield "## Errors\n"
    yield (
        "In the tables they are those of every attempt, the ones that do not count for the figures "
        "included.\n"
    )
    if not kinds:
        counted = any(one.valid for one in readings.all)
        yield ("None: every reply came." if counted else "Nothing was measured that counts.") + "\n"
    for kind in kinds:
        yield f"- `{kind}`: {explained(kind) or 'as the tool or the system calls it'}"
    if kinds:
        yield ""
    overflows = {
        column.name: sum(
            one.tcp.overflows for one in readings.all if one.column == column.name and one.tcp
        )
        for column in study.columns
    }
    for column, count in overflows.items():
        if count:
            yield (
                f"- {column}: a listen queue was full {count:,} times. Nobody sees an error of "
                "that: the client asks again after 1 s, then 2, then 4, and what looks like a slow "
                "server is a short queue."
            )
    yield ""


def explained(kind: str) -> str | None:
    """Return what an error is, also of those that name more: a status, a code, a phase's error."""
    names = (kind, kind.partition(":")[0], kind.partition(" ")[0])
    return next((_EXPLAINED[name] for name in names if name in _EXPLAINED), None)


def _disagreements(study: Study, readings: Readings) -> Iterator[str]:
    if len(study.tools) < 2:
        return
    yield "## Where the tools disagree\n"
    said = [*remarks(study, readings), *rounding(study, readings)]
    yield from (f"- {line}" for line in said or ["They do not, by more than their spread."])
    yield ""
    yield (
        "Every tool ran a closed loop: a client sends its next request when it has its reply, so "
        "that a slow server is asked less often. Tools differ by that as well: in an open loop, as "
        "in `bench run` or with loadtest's `--rps`, requests come on schedule whatever the server "
        "does, and its latencies are not to be held against these.\n"
    )
    yield "What to know of each:\n"
    for tool in study.tools:
        yield f"- {tool} {'; '.join(TOOLS[tool].habits)}."
    yield ""


def _left_out(readings: Readings) -> Iterator[str]:
    discarded, failures = readings.discarded(), readings.failures()
    if not discarded and not failures:
        return
    yield "## What does not count\n"
    for one in (*failures, *discarded):
        why = one.failure or "; ".join(gate.reason for gate in missed(one.gates))
        errors = one.outcome and kinds_text(one.outcome.kinds)
        said = f"; errors: {errors}" if errors else ""
        yield f"- round {one.round}, {one.column}, {one.cell}, {one.tool}: {why}{said}"
    yield ""


def ratio_text(found: Ratio | None) -> str:
    if found is None:
        return "–"
    text = f"{found.spread.median:.2f}x"
    if found.interval is not None:
        return f"{text} [{found.interval.low:.2f}, {found.interval.high:.2f}]"
    if found.spread.n == 1:
        return text
    return f"{text} ({found.spread.low:.2f} to {found.spread.high:.2f})"


def error_text(readings: Readings, cell: str, tool: str, column: Column) -> str:
    errors = readings.errors(cell, tool, column.name)
    if errors is None:
        return "–"
    asked = readings.asked(cell, tool, column.name)
    return f"{kinds_text(errors) or 0} of {asked:,}"


def kinds_text(errors: Counter[str]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in errors.most_common())


def _spreads(
    readings: Readings, columns: Sequence[Column], cell: str, tool: str, figure: str
) -> list[str]:
    found = [readings.spread(cell, tool, column.name, figure) for column in columns]
    return [_spread(one) for one in found]


def _spread(found: Spread | None) -> str:
    return "–" if found is None else ranged(found)


def _row(name: str, values: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(values)} |"


def _unless_empty(name: str, values: Sequence[str]) -> Iterator[str]:
    if any(value not in ("", "–") for value in values):
        yield _row(name, values)
