"""``bench layers``: the channel layers against each other, without servers and clients."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import provenance
from bench.layers import rounds
from bench.layers.aims import Verdict, verdicts
from bench.layers.cell import Cell
from bench.layers.chart import chart
from bench.layers.measures import MEASURES
from bench.layers.page import WORDS, number, readme, times
from bench.layers.peers import PEERS
from bench.layers.results import Results, write
from bench.layers.rounds import Plan
from bench.ledger import LOCAL, new_folder
from bench.theme import LIGHT, png, svg

FAILED = 1


@click.command()
@click.option("--rounds", "number", type=int, help=f"How many rounds; {rounds.ROUNDS} by default.")
@click.option("--measure", "measures", multiple=True, help=f"One of {', '.join(MEASURES)}.")
@click.option("--layer", "peers", multiple=True, help=f"One of {', '.join(PEERS)}.")
@click.option("--quick", is_flag=True, help="A few short rounds: medians and ranges.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="A new folder. Without it: results/local/<date>-<time>-layers.",
)
def layers(
    number: int | None,
    measures: tuple[str, ...],
    peers: tuple[str, ...],
    quick: bool,
    into: Path | None,
) -> None:
    """Measure channel layers by themselves: speed, CPU, losses and duplicates.

    --measure and --layer may be given several times. Ends with the aims of channels_ipc, and exits
    with 1 where a cell could not be measured.
    """
    console, started = Console(), datetime.now(UTC)
    plan = rounds.plan(
        measures=measures, peers=peers, rounds=number, quick=quick, seed=secrets.randbelow(10**6)
    )
    folder = new_folder(into or LOCAL / f"{started:%Y%m%d-%H%M%S}-layers", started)
    results = taken(plan, folder, started, console)
    publish(results, folder)
    console.print(aims_table(verdicts(results)))
    console.print(f"{folder}/README.md", soft_wrap=True)
    failed = {(cell.measure, cell.peer): cell.failure for cell in results.cells if cell.failure}
    for (measure, peer), failure in failed.items():
        console.print(
            f"[red]missing[/red] {measure}, {peer}: {failure.splitlines()[-1]}", soft_wrap=True
        )
    if failed:
        raise SystemExit(FAILED)


def taken(plan: Plan, folder: Path, started: datetime, console: Console) -> Results:
    """Measure, and write each cell down as it comes. Ctrl-C ends it with what there is."""
    cells: list[Cell] = []
    found = provenance.provenance(
        pinned=provenance.Pinning(None, None), seed=plan.seed, command=provenance.command_line()
    )

    def results(finished: datetime | None) -> Results:
        ended = finished.isoformat(timespec="seconds") if finished else None
        began = started.isoformat(timespec="seconds")
        return Results(began, ended, plan.rounds, plan.duration_s, tuple(cells), found)

    with Progress(console=console) as progress:
        keep = keeper(cells, progress, len(plan.cells()) * plan.rounds)
        try:
            rounds.run(plan, lambda cell: (keep(cell), write(results(None), folder))[0])
        except KeyboardInterrupt:
            return results(None)
    return results(datetime.now(UTC))


def keeper(cells: list[Cell], progress: Progress, total: int) -> Callable[[Cell], None]:
    task = progress.add_task("layers", total=total)

    def keep(cell: Cell) -> None:
        cells.append(cell)
        progress.update(task, advance=1, description=line(cell))

    return keep


def line(cell: Cell) -> str:
    """Return what a person wants to see go by."""
    measure = MEASURES[cell.measure]
    value = cell.figures.get(measure.figure)
    said = "missing" if value is None else f"{number(value)} {measure.unit}"
    wrong = f", {cell.lost} lost" * bool(cell.lost) + f", {cell.duplicates} twice" * bool(
        cell.duplicates
    )
    return f"{cell.measure} {cell.peer}: {said}{wrong}"


def publish(results: Results, folder: Path) -> None:
    """Write the data, the picture and the page."""
    write(results, folder)
    drawing = chart(results)
    if drawing is not None:
        (folder / f"{drawing.name}.svg").write_text(svg(drawing, LIGHT))
        (folder / f"{drawing.name}.png").write_bytes(png(drawing, LIGHT))
    (folder / "README.md").write_text(readme(results, [drawing.name] if drawing else []))


def aims_table(found: list[Verdict]) -> Table:
    table = Table("aim", "wanted", "median (range)", "", title="Aims of channels_ipc")
    for verdict in found:
        word = WORDS[verdict.reached].strip("*")
        table.add_row(verdict.aim.title, verdict.aim.text, times(verdict.ratio), word)
    return table
