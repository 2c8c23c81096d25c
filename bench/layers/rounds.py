"""Rounds: every measure on every peer once, in an order of its own, round after round."""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from bench.campaign import ATTEMPTS
from bench.errors import BadInput
from bench.layers import services
from bench.layers.cell import Cell, Stage, measured
from bench.layers.measures import MEASURES, Measure
from bench.layers.measures import resolve as resolve_measure
from bench.layers.peers import PEERS, Peer
from bench.layers.peers import resolve as resolve_peer

ROUNDS, QUICK_ROUNDS = 10, 3

START_S = 1.2  # to start and stop the processes of a cell

Place = tuple[int, str, str]  # round, measure, peer


@dataclass(frozen=True)
class Plan:
    """What is to be measured. ``seed`` decides the order, so that it can be had again."""

    measures: tuple[Measure, ...]
    peers: tuple[Peer, ...]
    rounds: int
    quick: bool
    seed: int

    def duration_s(self, measure: Measure) -> float:
        return measure.quick_s if self.quick else measure.duration_s

    def estimate_s(self) -> float:
        """Return how long it takes where nothing is measured again."""
        return self.rounds * sum(
            START_S + measure.times * self.duration_s(measure) for measure, _ in self.cells()
        )

    def cells(self) -> list[tuple[Measure, Peer]]:
        """Return the cells of one round: each measure with those peers that it is for."""
        return [
            (measure, peer)
            for measure in self.measures
            for peer in self.peers
            if peer.name in measure.peers
        ]

    def order(self, number: int) -> list[tuple[Measure, Peer]]:
        """Return the cells of round ``number``: measures shuffled, and the peers within each.

        The peers of a measure stay together, so that a ratio is of neighbours in time.
        """
        chance = random.Random(f"{self.seed} {number}")  # noqa: S311 - an order, no secret
        measures = chance.sample(self.measures, len(self.measures))
        cells = self.cells()
        return [
            cell
            for measure in measures
            for cell in shuffled([one for one in cells if one[0] is measure], chance)
        ]


def shuffled(
    cells: Sequence[tuple[Measure, Peer]], chance: random.Random
) -> list[tuple[Measure, Peer]]:
    return chance.sample(cells, len(cells))


def plan(
    *, measures: Sequence[str], peers: Sequence[str], rounds: int | None, quick: bool, seed: int
) -> Plan:
    """Return the plan for these names, all of them where none is given; raise ``BadInput``."""
    if rounds is not None and rounds < 1:
        raise BadInput(f"--rounds {rounds} measures nothing: give 1 or more")
    made = Plan(
        tuple(resolve_measure(name) for name in measures or MEASURES),
        tuple(resolve_peer(name) for name in peers or PEERS),
        rounds or (QUICK_ROUNDS if quick else ROUNDS),
        quick,
        seed,
    )
    if not made.cells():
        raise BadInput(
            f"no measure of {', '.join(measures)} is for {', '.join(peers)}: "
            f"{measures[0]} is for {', '.join(MEASURES[measures[0]].peers)}"
        )
    return made


def run(plan: Plan, keep: Callable[[Cell], None], done: Collection[Place] = ()) -> None:
    """Measure everything that is not ``done``; ``keep`` is given each attempt as it comes."""
    redis = any(peer.transport for _, peer in plan.cells())
    with services.running(redis=redis) as (places, redis_pid):
        stage = Stage(places, redis_pid)
        for number, measure, peer in everything(plan):
            if (number, measure.name, peer.name) not in done:
                attempt(plan, number, measure, peer, stage, keep)


def attempt(
    plan: Plan,
    number: int,
    measure: Measure,
    peer: Peer,
    stage: Stage,
    keep: Callable[[Cell], None],
) -> None:
    """Measure one cell until it counts, or has failed, or was disturbed too often."""
    for which in range(1, ATTEMPTS + 1):
        found = measured(measure, peer, stage, plan.duration_s(measure), number)
        keep(replace(found, attempt=which))
        if not found.discarded:
            return


def everything(plan: Plan) -> Iterator[tuple[int, Measure, Peer]]:
    for number in range(1, plan.rounds + 1):
        for measure, peer in plan.order(number):
            yield number, measure, peer


def done(cells: Sequence[Cell]) -> set[Place]:
    """Return what needs no more attempts."""
    return {
        (cell.round, cell.measure, cell.peer)
        for cell in cells
        if not cell.discarded or cell.attempt >= ATTEMPTS
    }
