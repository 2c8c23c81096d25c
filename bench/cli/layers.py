"""``bench layers``: the channel layers against each other, without servers and clients."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import provenance
from bench.campaign import ATTEMPTS
from bench.errors import BadInput
from bench.layers import page, placement, rounds
from bench.layers.aims import WORDS, Verdict, verdicts
from bench.layers.cell import Cell
from bench.layers.measures import MEASURES
from bench.layers.peers import PEERS
from bench.layers.results import Results, read, write
from bench.layers.rounds import Plan
from bench.ledger import LOCAL, new_folder
from bench.spreads import times

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
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="The folder of a run that was interrupted: measure what it lacks. With --rounds it gets "
    "more rounds, for one whose machine was disturbed too often.",
)
def layers(
    number: int | None,
    measures: tuple[str, ...],
    peers: tuple[str, ...],
    quick: bool,
    into: Path | None,
    resume: Path | None,
) -> None:
    """Measure channel layers by themselves: speed, CPU, losses and duplicates.

    --measure and --layer may be given several times. Ends with the aims of channels_ipc, and exits
    with 1 where a cell could not be measured. Ctrl-C writes down what there is; --resume goes on.
    """
    console = Console()
    if resume is None:
        plan = rounds.plan(
            measures=measures,
            peers=peers,
            rounds=number,
            quick=quick,
            seed=secrets.randbelow(10**6),
        )
        folder, begun = begin(plan, into)
    elif any((measures, peers, quick, into)):
        raise BadInput("--resume goes on with what its folder asks for: leave the others out")
    else:
        folder, begun = resume, resumed(read(resume), number)
        plan = rounds.plan(
            measures=begun.measures,
            peers=begun.peers,
            rounds=begun.rounds,
            quick=begun.quick,
            seed=begun.seed,
        )
    results = taken(plan, folder, begun, console)
    page.publish(results, folder)
    console.print(aims_table(verdicts(results)))
    console.print(f"{folder}/README.md", soft_wrap=True)
    if list(told(results, console)):
        raise SystemExit(FAILED)


def begin(plan: Plan, into: Path | None) -> tuple[Path, Results]:
    started = datetime.now(UTC)
    folder = new_folder(into or LOCAL / f"{started:%Y%m%d-%H%M%S}-layers", started)
    results = Results(
        started=started.isoformat(timespec="seconds"),
        finished=None,
        rounds=plan.rounds,
        quick=plan.quick,
        seed=plan.seed,
        measures=tuple(measure.name for measure in plan.measures),
        peers=tuple(peer.name for peer in plan.peers),
        cells=(),
        provenance=provenance.provenance(
            pinned=provenance.Pinning(None, None),
            seed=plan.seed,
            command=provenance.command_line(),
        )
        | {"pinning": pinned(plan)},
    )
    return folder, results


def pinned(plan: Plan) -> dict[str, dict[str, object]]:
    """Return the processors of each measure's processes, in the order of its roles."""
    cpus = placement.usable()
    return {
        measure.name: {
            "processes": placement.placed(measure.placement, len(measure.roles), cpus),
            "redis-server": placement.server(measure.placement, cpus),
        }
        for measure in plan.measures
    }


def resumed(results: Results, number: int | None) -> Results:
    """Return ``results`` with a note that they are gone on with, to ``number`` rounds if given."""
    if number is not None and number <= results.rounds:
        raise BadInput(f"--rounds {number}: {results.rounds} are asked for already: give more")
    at = f"{datetime.now(UTC).isoformat(timespec='seconds')}, commit {provenance.commit()}"
    if number is not None:
        at += f", from {results.rounds} rounds to {number}"
    return replace(results, rounds=number or results.rounds, resumed=(*results.resumed, at))


def taken(plan: Plan, folder: Path, begun: Results, console: Console) -> Results:
    """Measure, and write each cell down as it comes. Ctrl-C ends it with what there is."""
    cells = list(begun.cells)
    done = rounds.done(cells)
    total = len(plan.cells()) * plan.rounds
    console.print(
        f"{len(plan.cells())} cells a round, {plan.rounds} rounds: "
        f"about {plan.estimate_s() * (total - len(done)) / total / 60:.0f} min, and longer where "
        f"other processes disturb it (at most {ATTEMPTS} attempts a cell)",
        soft_wrap=True,
    )
    with Progress(console=console) as progress:
        keep = keeper(cells, progress, total, len(done))
        try:
            rounds.run(
                plan,
                lambda cell: (keep(cell), write(replace(begun, cells=tuple(cells)), folder))[0],
                done,
            )
        except KeyboardInterrupt:
            return replace(begun, cells=tuple(cells))
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    return replace(begun, cells=tuple(cells), finished=finished)


def keeper(
    cells: list[Cell], progress: Progress, total: int, completed: int
) -> Callable[[Cell], None]:
    task = progress.add_task("layers", total=total, completed=completed)

    def keep(cell: Cell) -> None:
        cells.append(cell)
        progress.update(task, completed=len(rounds.done(cells)), description=line(cell))
        if not progress.console.is_terminal:
            progress.console.print(f"round {cell.round} {line(cell)}", soft_wrap=True)

    return keep


def line(cell: Cell) -> str:
    """Return what a person wants to see go by."""
    measure = MEASURES[cell.measure]
    value = cell.figures.get(measure.figure)
    said = "missing" if value is None else f"{page.number(value)} {measure.unit}"
    wrong = f", {cell.lost} lost" * bool(cell.lost) + f", {cell.duplicates} twice" * bool(
        cell.duplicates
    )
    thrown = f", discarded: {'; '.join(cell.discarded)}" if cell.discarded else ""
    return f"{cell.measure} {cell.peer}: {said}{wrong}{thrown}"


def told(results: Results, console: Console) -> Sequence[str]:
    """Print what could not be measured; return it."""
    found = [
        f"{name}, {peer}: {page.why_missing(cells)}"
        for name in results.measures
        for peer in MEASURES[name].peers
        if (cells := results.of(name, peer)) and not any(cell.counts for cell in cells)
    ]
    for one in found:
        console.print(f"[red]missing[/red] {one}", soft_wrap=True)
    return found


def aims_table(found: list[Verdict]) -> Table:
    table = Table("aim", "wanted", "median (range)", "", title="Aims of channels_ipc")
    for verdict in found:
        word = WORDS[verdict.reached].strip("*")
        table.add_row(verdict.aim.title, verdict.aim.text, times(verdict.ratio), word)
    return table
