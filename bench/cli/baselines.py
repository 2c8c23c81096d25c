"""``bench baselines``: what each part costs before your own code runs."""

import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from bench import provenance
from bench.baselines import rounds, serving
from bench.baselines.hops import hops
from bench.baselines.page import publish
from bench.baselines.results import Cell, Results, short, write
from bench.baselines.rounds import Plan
from bench.baselines.row import TABLES
from bench.cli.run import interruptible, kept_to
from bench.figures import number
from bench.ledger import LOCAL, new_folder
from bench.progress import duration

FAILED = 1


@click.command()
@click.option(
    "--full/--quick", help="Ten rounds with intervals, or three short ones (the default)."
)
@click.option(
    "--rows",
    "patterns",
    multiple=True,
    metavar="NAME",
    help=f"A table ({', '.join(TABLES)}), a row, or a pattern such as 'uwsgi-*'.",
)
@click.option("--generator", "generators", multiple=True, help="wrk or ab; both by default.")
@click.option("--rounds", "number_", type=int, help="How often everything is measured.")
@click.option("--seconds", type=int, help="How long each measurement takes.")
@click.option("--minutes", type=float, help="Begin no round that would end later than this.")
@click.option("--seed", type=int, help="Of the order. Without it: a random one.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="A new folder. Without it: results/local/<date>-<time>-baselines.",
)
def baselines(
    full: bool,
    patterns: tuple[str, ...],
    generators: tuple[str, ...],
    number_: int | None,
    seconds: int | None,
    minutes: float | None,
    seed: int | None,
    into: Path | None,
) -> None:
    """Measure nginx alone, sockets, frameworks, and the way of a request through Django.

    Rebuilds the tables of "Maximum Throughput, 2012" beside its figures, and climbs the ladder from
    a bare ASGI server to Django. --rows and --generator may be given several times. Exits with 1
    where a row has no valid measurement, or lacks more than one round in ten of a full campaign.
    """
    plan = rounds.plan(
        "full" if full else "quick",
        patterns=patterns,
        generators=generators,
        rounds=number_,
        seconds=seconds,
        minutes=minutes,
        seed=secrets.randbelow(2**32) if seed is None else seed,
    )
    console, started = Console(), datetime.now(UTC)
    folder = new_folder(into or LOCAL / f"{started:%Y%m%d-%H%M%S}-baselines", started)
    announce(plan, console)
    results = taken(plan, folder, started, console)
    publish(results, folder)
    console.print(f"{folder}/README.md", soft_wrap=True, highlight=False)
    if bad := short(results):
        for (row, by), why in bad.items():
            console.print(f"[red]too few[/] {row} ({by}): {why}", soft_wrap=True, highlight=False)
        raise SystemExit(FAILED)


def announce(plan: Plan, console: Console) -> None:
    for row, why in plan.skipped.items():
        console.print(f"[yellow]skipped[/] {row}: {why}", soft_wrap=True, highlight=False)
    console.print(
        f"{len(plan.rows)} rows on {len(plan.sites)} deployments, {plan.rounds} rounds, "
        f"about {duration(plan.rounds * plan.round_s())}; Ctrl-C keeps what is measured"
    )


def taken(plan: Plan, folder: Path, started: datetime, console: Console) -> Results:
    """Measure, and write each cell down as it comes. Ctrl-C ends it with what there is."""
    cells: list[Cell] = []
    pinned = provenance.pinning(os.sched_getaffinity(0), provenance.siblings())
    found = provenance.provenance(pinned=pinned, seed=plan.seed, command=provenance.command_line())
    found["versions"] |= serving.versions()
    trips = hops(plan.rows)

    def results(finished: datetime | None, done: int) -> Results:
        return Results(
            started=started.isoformat(timespec="seconds"),
            finished=finished.isoformat(timespec="seconds") if finished else None,
            kind=plan.kind,
            rounds=done,
            seconds={str(name): value for name, value in plan.seconds.items()},
            rows=tuple(row.name for row in plan.rows),
            cells=tuple(cells),
            provenance=found,
            skipped=provenance.anonymous(plan.skipped),
            hops=trips,
        )

    with Progress(console=console) as progress, kept_to(pinned), interruptible():
        told = teller(progress, plan)

        def keep(cell: Cell) -> None:
            cells.append(nameless(cell))
            told(cell)
            write(results(None, plan.rounds), folder)

        try:
            done = rounds.run(plan, pinned, keep)
        except KeyboardInterrupt:
            return results(None, max((cell.round for cell in cells), default=0))
    return results(datetime.now(UTC), done)


def nameless(cell: Cell) -> Cell:
    """Return ``cell`` without what names this machine."""
    return replace(
        cell,
        failure=provenance.anonymous(cell.failure),
        log_tail=provenance.anonymous(cell.log_tail),
        command=provenance.anonymous(cell.command),
    )


def teller(progress: Progress, plan: Plan) -> Callable[[Cell], None]:
    task = progress.add_task("baselines", total=plan.rounds * len(plan.rows) * len(plan.seconds))

    def tell(cell: Cell) -> None:
        advance = 1 if cell.attempt == 1 else 0
        progress.update(task, advance=advance, description=line(cell))

    return tell


def line(cell: Cell) -> str:
    """Return what a person wants to see go by."""
    if cell.rps is None:
        return f"{cell.row} {cell.generator}: failed"
    return f"{cell.row} {cell.generator}: {number(cell.rps)}/s" + " (discarded)" * (not cell.valid)
