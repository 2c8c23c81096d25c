"""``bench fanout``: topics to many subscribers, by hub and by group_send."""

import os
import random
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import provenance
from bench.errors import BadInput
from bench.fanout import floor
from bench.fanout.aims import MOST_P95_MS, serves
from bench.fanout.cells import (
    FEWER_ROUNDS,
    QUESTIONS,
    QUICK_QUESTIONS,
    SEARCH,
    Cell,
    cells,
    variant,
)
from bench.fanout.floor import Floor
from bench.fanout.measure import measured
from bench.fanout.outcome import Outcome
from bench.fanout.page import publish
from bench.fanout.results import Results, write, write_raw
from bench.fanout.search import largest
from bench.ledger import LOCAL, new_folder

FAILED = 1
ROUNDS, QUICK_ROUNDS = 10, 2
ATTEMPTS = 3  # of a cell that missed a gate; the discards are kept
FLOOR_FRAME_BYTES = 20 * 1_028
FLOOR_SOCKETS = 1_000
FLOOR_S = 2.0
SEARCHED = Cell(
    SEARCH, variant("hub"), subscriptions=1_000, topics=50_000, rate=2_000.0, seconds=5.0
)
FIRST_USERS, MOST_USERS = 125, 8_000


@click.command()
@click.option("--question", "questions", multiple=True, help=f"One of {', '.join(QUESTIONS)}.")
@click.option("--only", multiple=True, help="Cells whose name holds this text.")
@click.option(
    "--rounds",
    type=int,
    help=f"How many rounds; {ROUNDS} by default, {min(FEWER_ROUNDS.values())} for curves.",
)
@click.option("--quick", is_flag=True, help="Two short rounds of the main questions.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="A new folder. Without it: results/local/<date>-<time>-fanout.",
)
@click.option(
    "--find-users",
    is_flag=True,
    help=f"Instead: the most users that one process serves at a p95 of {MOST_P95_MS:g} ms.",
)
@click.option("--list", "listing", is_flag=True, help="Name the cells, and measure nothing.")
def fanout(
    questions: tuple[str, ...],
    only: tuple[str, ...],
    rounds: int | None,
    quick: bool,
    into: Path | None,
    find_users: bool,
    listing: bool,
) -> None:
    """Measure fan-out to topics: hub against group_send, layers, WebSocket against long polling.

    --question and --only may be given several times. Exits with 1 where a cell failed.
    """
    if rounds is not None and rounds < 1:
        raise BadInput(f"--rounds {rounds} measures nothing: give 1 or more")
    chosen = questions or (QUICK_QUESTIONS if quick else tuple(QUESTIONS))
    planned = picked(cells(chosen, quick=quick), only)
    console, started = Console(), datetime.now(UTC)
    if listing:
        for cell in planned:
            console.print(cell.name, soft_wrap=True, highlight=False)
        return
    folder = new_folder(into or LOCAL / f"{started:%Y%m%d-%H%M%S}-fanout", started)
    if find_users:
        results = searched(folder, started, console)
    else:
        asked = rounds or (QUICK_ROUNDS if quick else ROUNDS)
        fewer = {} if rounds else FEWER_ROUNDS
        in_round = {
            number: [cell for cell in planned if number <= fewer.get(cell.question, asked)]
            for number in range(1, asked + 1)
        }
        results = taken(in_round, chosen, folder, started)
    publish(results, folder)
    console.print(table(results))
    console.print(f"{folder}/README.md", soft_wrap=True)
    failed = [one for one in results.outcomes if one.failure]
    for one in failed:
        console.print(f"[red]failed[/red] {one.cell}: {one.failure}", soft_wrap=True)
    if failed:
        raise SystemExit(FAILED)


def picked(planned: list[Cell], only: tuple[str, ...]) -> list[Cell]:
    found = [cell for cell in planned if not only or any(text in cell.name for text in only)]
    if not found:
        raise BadInput(f"--only {' '.join(only)} names no cell: --list shows them")
    return found


def taken(
    in_round: Mapping[int, list[Cell]], questions: tuple[str, ...], folder: Path, started: datetime
) -> Results:
    """Measure, and write each outcome down as it comes. Ctrl-C ends it with what there is.

    ``in_round`` has the cells of each round.
    """
    rounds = len(in_round)
    outcomes: list[Outcome] = []
    floors: list[Floor] = []
    seed = secrets.randbelow(10**6)
    pinned = provenance.pinning(os.sched_getaffinity(0), provenance.siblings())
    found = provenance.provenance(pinned=pinned, seed=seed, command=provenance.command_line())

    def results(finished: datetime | None) -> Results:
        ended = finished.isoformat(timespec="seconds") if finished else None
        began = started.isoformat(timespec="seconds")
        return Results(began, ended, rounds, questions, tuple(outcomes), tuple(floors), found)

    with Progress(console=Console()) as progress:
        task = progress.add_task("fanout", total=sum(map(len, in_round.values())))
        try:
            for number, planned in in_round.items():
                cpus = (*(pinned.server or ()), *(pinned.generator or ()))
                floors.append(floor.measure(FLOOR_SOCKETS, FLOOR_FRAME_BYTES, FLOOR_S, cpus))
                for cell in random.Random(f"{seed}/{number}").sample(planned, len(planned)):  # noqa: S311
                    for attempt, outcome in enumerate(attempts(cell, number, pinned), 1):
                        write_raw(outcome, folder, attempt)
                    outcomes.append(outcome)
                    write(results(None), folder)
                    progress.update(task, advance=1, description=line(outcome))
        except KeyboardInterrupt:
            return results(None)
    return results(datetime.now(UTC))


def searched(folder: Path, started: datetime, console: Console) -> Results:
    """Find the most users at which nothing is lost and the p95 is low enough; keep each try.

    Each user subscribes to 1,000 of 50,000 topics, and 2,000 messages/s are published.
    """
    outcomes: list[Outcome] = []
    pinned = provenance.pinning(os.sched_getaffinity(0), provenance.siblings())
    found = provenance.provenance(pinned=pinned, seed=0, command=provenance.command_line())

    def holds(users: int) -> bool:
        load = replace(SEARCHED, users=users)
        for attempt, outcome in enumerate(attempts(load, 1, pinned), 1):
            write_raw(outcome, folder, attempt)
        outcomes.append(outcome)
        console.print(line(outcome), highlight=False)
        return serves(outcome)

    held, failed = largest(holds, FIRST_USERS, MOST_USERS)
    console.print(f"held {held} users, did not hold {failed}")
    began, ended = (one.isoformat(timespec="seconds") for one in (started, datetime.now(UTC)))
    return Results(began, ended, 1, (SEARCH,), tuple(outcomes), (), found)


def attempts(cell: Cell, number: int, pinned: provenance.Pinning) -> Iterator[Outcome]:
    """Yield outcomes until one counts, ``ATTEMPTS`` at most."""
    for _ in range(ATTEMPTS):
        outcome = nameless(measured(cell, number, pinned))
        yield outcome
        if outcome.valid:
            return


def nameless(outcome: Outcome) -> Outcome:
    """Leave out what names this machine."""
    return replace(outcome, failure=provenance.anonymous(outcome.failure))


def line(one: Outcome) -> str:
    """Return what a person wants to see go by."""
    if one.deliveries_per_server_cpu_s is None or one.p95_ms is None:
        return f"{one.cell}: {'failed' if one.failure else 'done'}"
    return f"{one.cell}: {one.deliveries_per_server_cpu_s:,.0f}/CPU-s, p95 {one.p95_ms:g} ms"


def table(results: Results) -> Table:
    found = Table("cell", "per server CPU-s", "p95 ms", "lost", "twice", title="Fan-out")
    for one in results.outcomes:
        lost = one.counts.get("lost", 0) + one.counts.get("missing", 0)
        rate = one.deliveries_per_server_cpu_s
        found.add_row(
            one.cell,
            "" if rate is None else f"{rate:,.0f}",
            "" if one.p95_ms is None else f"{one.p95_ms:.1f}",
            f"{lost:,}",
            f"{one.counts.get('duplicated', 0):,}",
        )
    return found
