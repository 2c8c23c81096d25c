"""Measures what a plan says, writes each reading down as it comes, and the report at the end."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import provenance
from bench.balancing.cells import ECHO_STUDY, HTTP_STUDY, EchoCell, HttpCell
from bench.balancing.chart import charts
from bench.balancing.figures import FIGURES, Readings, rps
from bench.balancing.page import error_text, heading, ratio_text, readme
from bench.balancing.reading import Reading, Study, read, read_study, write, write_study
from bench.balancing.remarks import ranged
from bench.balancing.rounds import Plan, Rounds
from bench.environment import configuration
from bench.figures import number
from bench.ledger import LOCAL, new_folder, writing
from bench.pictures import write_page
from bench.provenance import Pinning, anonymous
from bench.records import missed
from bench.variants import resolve


def measure(
    plan: Plan,
    *,
    title: str,
    study: bool,
    missing: dict[str, str],
    into: Path | None,
    pinned: Pinning,
    console: Console,
) -> tuple[Study, Readings]:
    """Measure, print and write everything; Ctrl-C ends it with what there is."""
    began = datetime.now(UTC)
    kind = "echo" if isinstance(plan.cells[0], EchoCell) else "http"
    folder = new_folder(into or LOCAL / f"{began:%Y%m%d-%H%M%S}-{kind}", began)
    about = _about(plan, title, kind, study, missing, began, pinned)
    found: list[Reading] = []
    try:
        _run(plan, pinned, folder, about, found, console)
    except KeyboardInterrupt:
        console.print("[yellow]interrupted[/]: everything is stopped")
    else:
        about = replace(about, finished=datetime.now(UTC).isoformat(timespec="seconds"))
    readings = Readings(tuple(found))
    publish((about, readings), folder)
    for cell in plan.cells:
        console.print(table(plan, readings, cell))
    console.print(f"{folder}/README.md", soft_wrap=True, highlight=False)
    return about, readings


def _run(
    plan: Plan,
    pinned: Pinning,
    folder: Path,
    about: Study,
    found: list[Reading],
    console: Console,
) -> None:
    with writing(folder):
        write_study(about, folder)
    total = plan.rounds * len(plan.columns) * len(plan.pairs())
    # Drawing takes a millisecond on the generator's side: once a second is enough.
    with Progress(console=console, transient=True, refresh_per_second=1) as progress:
        task = progress.add_task("", total=total)

        def keep(reading: Reading) -> None:
            with writing(folder):
                write(reading, folder / "raw")
            found.append(reading)
            progress.update(task, advance=reading.attempt == 1)
            console.print(line(reading), highlight=False, soft_wrap=True, markup=False)

        Rounds(plan, pinned, keep, lambda text: progress.update(task, description=text)).go()


def _about(
    plan: Plan,
    title: str,
    kind: str,
    study: bool,
    missing: dict[str, str],
    began: datetime,
    pinned: Pinning,
) -> Study:
    variants = [] if plan.own else [one.variant for one in plan.columns]
    reference = {"http": HTTP_STUDY, "echo": ECHO_STUDY}[kind]
    return Study(
        title=title,
        kind=kind,
        reference=reference if study else None,
        started=began.isoformat(timespec="seconds"),
        finished=None,
        rounds=plan.rounds,
        columns=plan.columns,
        cells=plan.cells,
        tools=tuple(tool.name for tool in plan.tools),
        missing=missing,
        server_cores=pinned.server_cores,
        generator_cores=len(pinned.generator or ()) or pinned.server_cores,
        configurations={name: anonymous(configuration(resolve(name))) for name in variants},
        provenance=provenance.provenance(
            pinned=pinned, seed=plan.seed, command=provenance.command_line()
        ),
    )


def found_in(folder: Path) -> tuple[Study, Readings]:
    """Return what ``folder`` holds of a study."""
    return read_study(folder), Readings(tuple(read(folder / "raw")))


def publish(found: tuple[Study, Readings], folder: Path) -> None:
    """Write the data of the study, the pictures and the page; its readings are there already."""
    about, _ = found
    drawings = charts(*found)
    with writing(folder):
        write_page(readme(*found, drawings), drawings, folder)
        write_study(about, folder)


def line(reading: Reading) -> str:
    """Return what a person wants to see go by."""
    place = f"{reading.round:>2} {reading.column:<14} {reading.cell:<26} {reading.tool:<8}"
    if reading.failure is not None or reading.outcome is None:
        return f"{place} failed: {reading.failure}"
    outcome = reading.outcome
    errors = ", ".join(f"{count} {kind}" for kind, count in outcome.kinds.items())
    against = ", ".join(gate.name for gate in missed(reading.gates))
    return (
        f"{place} {number(rps(reading)):>7}/s, {errors or 'no error'}"
        f"{f', discarded: {against}' * bool(against)}"
    )


def table(plan: Plan, readings: Readings, asked: HttpCell | EchoCell) -> Table:
    """Return one cell for the terminal: a row for each column and tool."""
    title, cell = heading(asked).replace("`", ""), asked.name
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    named = {"rps": "per second", "per_cpu_s": "per CPU-s"}
    if isinstance(asked, EchoCell) and asked.detail:
        named |= {name: FIGURES[name].label for name in ("connects", "closes")}
    named |= {"cpu_max": "CPU max", "pss_mb": "MB", "processes": "pids"}
    heads = ("", "", "times", *named.values(), "errors")
    for place, head in enumerate(heads):
        shown.add_column(head, justify="left" if place < 2 or head == "errors" else "right")
    first = plan.columns[0]
    for column in plan.columns:
        for tool in (one.name for each, one in plan.pairs() if each.name == cell):
            if not readings.of(cell, tool, column.name):
                why = readings.why_not(cell, tool, column.name)
                shown.add_row(column.name, tool, *["–"] * (len(named) + 1), why)
                continue
            found = [readings.spread(cell, tool, column.name, name) for name in named]
            texts = ["–" if one is None else ranged(one) for one in found]
            times = ratio_text(readings.ratio(cell, tool, (column.name, first.name)))
            shown.add_row(
                column.name, tool, times, *texts, error_text(readings, cell, tool, column)
            )
    return shown
