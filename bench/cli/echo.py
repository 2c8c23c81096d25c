"""``bench echo``: the matrix of messages and connections over WebSockets, every reply checked."""

import secrets
from pathlib import Path

import click
from rich.console import Console

from bench.balancing.cells import ECHO_CELLS, ECHO_COLUMNS, ECHO_STUDY, EchoCell
from bench.balancing.rounds import Plan
from bench.balancing.site import target as resolved
from bench.cli.http import (
    ROUNDS,
    STUDY_ROUNDS,
    own_columns,
    refuse_bad,
    refuse_both,
    run,
    study_columns,
)
from bench.tools.locust import LOCUST

VARIANT = "daphne-ipc"


@click.command()
@click.argument("variants", nargs=-1, metavar="[VARIANT]...")
@click.option("-p", "--target", help="A server of your own instead: a port, or its address.")
@click.option("-n", "--messages", default=15, show_default=True, help="By each connection.")
@click.option("-c", "--connections", default=400, show_default=True, help="Open at once.")
@click.option("--detail", is_flag=True, help="Time connecting, sending and closing apart.")
@click.option("--path", default="/ws/echo/", show_default=True)
@click.option("--seconds", default=2, show_default=True, help="Repeat a batch for so long.")
@click.option("--study", is_flag=True, help=f"The matrix and columns of the {ECHO_STUDY}.")
@click.option("--rounds", type=int, help=f"{ROUNDS} by default; with --study {STUDY_ROUNDS}.")
@click.option("--seed", type=int, help="Of the order. Without it: a random one.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="A new folder. Without it: results/local/<date>-<time>-echo.",
)
def echo(
    variants: tuple[str, ...],
    target: str | None,
    messages: int,
    connections: int,
    detail: bool,
    path: str,
    seconds: int,
    study: bool,
    rounds: int | None,
    seed: int | None,
    into: Path | None,
) -> None:
    """Send messages over many sockets of VARIANTs, and check that each comes back unchanged.

    Every socket opens, sends its messages one by one, and closes. Without --detail each does so
    for itself, and the whole is timed; with it all open, then all send, then all close. Exits with
    1 where a cell could not be measured.
    """
    refuse_bad(messages, connections, seconds)
    refuse_both(target, variants, study=study)
    missing: dict[str, str] = {}
    if study:
        columns, cells = study_columns(ECHO_COLUMNS, variants, missing), ECHO_CELLS
    else:
        columns = own_columns(variants or (VARIANT,), target)
        cells = (EchoCell(messages, connections, detail, seconds, path),)
    plan = Plan(
        columns,
        cells,
        (LOCUST,),
        (STUDY_ROUNDS if study else ROUNDS) if rounds is None else rounds,
        secrets.randbelow(2**32) if seed is None else seed,
        own=resolved(target) if target else None,
    )
    run(plan, "WebSocket echo through several fronts", study, missing, into, Console())
