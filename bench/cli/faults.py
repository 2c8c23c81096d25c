"""``bench faults``: break what is behind each proxy, under load, and count what is lost."""

import os
import random
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from bench import provenance, proxies, supervise
from bench.cli.run import INTERRUPTED, Interrupted, interruptible
from bench.environment import configuration
from bench.errors import BadInput
from bench.faults.cases import FAULTS, Outcome, Unharmed, outcomes
from bench.faults.page import Results, write
from bench.ledger import LOCAL, new_folder
from bench.proxies import PROXIES
from bench.variants import VARIANTS, Variant, resolve

FAILED = 1
ROUNDS = 3
# With sockets and without, on several ports: what breaks is not the channel layer. Daphne, whose
# study this is, does not say which process has a socket.
DEFAULT = [one.name for one in VARIANTS.values() if one.sharing == "ports" and one.layer != "redis"]


@click.command()
@click.argument("variants", nargs=-1)
@click.option(
    "--fault", "faults", multiple=True, type=click.Choice(list(FAULTS)), help="Only this."
)
@click.option("--rounds", type=click.IntRange(1), default=ROUNDS, show_default=True)
@click.option("--seed", type=int, help="Of the order of the variants. Without it: a random one.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="A new folder. Without it: results/local/<date>-<time>-faults.",
)
def faults(
    variants: tuple[str, ...],
    faults: tuple[str, ...],
    rounds: int,
    seed: int | None,
    into: Path | None,
) -> None:
    """Break what is behind each front while it serves, and count what was lost.

    VARIANTS are those with a proxy and several ports unless some are named. --fault may be given
    several times. About 40 s a variant and round. Exits with 1 where a variant could not be tried.
    """
    started, console = datetime.now(UTC), Console(soft_wrap=True, highlight=False)
    chosen = [resolve(name) for name in variants or DEFAULT]
    for variant in chosen:
        if variant.proxy not in PROXIES:
            which = ", ".join(PROXIES)
            raise BadInput(f"{variant.name} has none of {which} in front: see `bench list`")
        supervise.require(variant, os.environ)
    seed = secrets.randbelow(2**32) if seed is None else seed
    folder = new_folder(into or LOCAL / f"{started:%Y%m%d-%H%M%S}-faults", started)
    book = Book(chosen, rounds, seed, started, folder, console)
    finished = None
    with suppress(Interrupted), interruptible():
        for order in shuffled(chosen, rounds, seed):
            for variant in order:
                book.keep(variant, list(faults or FAULTS))
        finished = datetime.now(UTC)
    book.write(finished)
    console.print(f"{folder}/README.md")
    if finished is None:
        raise SystemExit(INTERRUPTED)
    if book.failures:
        raise SystemExit(FAILED)


def shuffled(variants: Sequence[Variant], rounds: int, seed: int) -> list[list[Variant]]:
    """Return the variants in another order for each round."""
    order = random.Random(seed)  # noqa: S311 - the order of a measurement is no secret
    return [order.sample(list(variants), len(variants)) for _ in range(rounds)]


class Book:
    """What has been found so far; written down after each variant, so that nothing is lost."""

    def __init__(
        self,
        variants: Sequence[Variant],
        rounds: int,
        seed: int,
        started: datetime,
        folder: Path,
        console: Console,
    ) -> None:
        self.rounds, self.started, self.folder, self.console = rounds, started, folder, console
        self.outcomes: list[Outcome] = []
        self.failures: dict[str, str] = {}
        self.provenance = provenance.provenance(
            pinned=provenance.Pinning(None, None), seed=seed, command=provenance.command_line()
        )
        self.configurations = provenance.anonymous(
            {one.name: configuration(one) | proxies.files(one) for one in variants}
        )

    def keep(self, variant: Variant, names: list[str]) -> None:
        """Deploy ``variant``, cause each of the faults and write down what came of it."""
        try:
            with supervise.deployed(variant) as deployment:
                for outcome in outcomes(deployment, names):
                    self.outcomes.append(outcome)
                    self.console.print(line(outcome))
        except (supervise.StartFailed, Unharmed) as failure:
            self.failures[variant.name] = provenance.anonymous(str(failure))
            self.console.print(f"[red]missing[/red] {variant.name}: {failure}")
        self.write(None)

    def write(self, finished: datetime | None) -> None:
        write(
            Results(
                started=self.started.isoformat(timespec="seconds"),
                finished=finished.isoformat(timespec="seconds") if finished else None,
                rounds=self.rounds,
                outcomes=tuple(self.outcomes),
                failures=self.failures,
                provenance=self.provenance,
                configurations=self.configurations,
            ),
            self.folder,
        )


def line(outcome: Outcome) -> str:
    """Return what a person wants to see go by."""
    said = (
        f"{outcome.variant} {outcome.fault}: {outcome.requests_lost} of {outcome.requests} "
        f"requests lost, {outcome.repeated} repeated"
    )
    if not outcome.sockets:
        return said
    ended = sum(outcome.sockets_ended.values())
    lost = "" if outcome.sockets_lost is None else f", {outcome.sockets_lost} of them needlessly"
    failed = sum(outcome.handshakes_failed.values())
    return (
        f"{said}; {ended} of {outcome.sockets} sockets ended{lost}; {failed} of "
        f"{outcome.handshakes} handshakes failed; {outcome.messages_lost} of "
        f"{outcome.messages_sent} messages lost"
    )
