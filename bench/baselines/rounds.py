"""Rounds: every site once in each, in an order of its own, and every row on it."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import get_args

from bench.baselines import serving
from bench.baselines.generators import GENERATORS, Name
from bench.baselines.measuring import measured, server_cpus
from bench.baselines.results import Cell
from bench.baselines.row import Row
from bench.baselines.rows import chosen
from bench.baselines.serving import Served
from bench.baselines.sites import Site
from bench.campaign import RESTS_S
from bench.errors import BadInput
from bench.provenance import Pinning
from bench.supervise import StartFailed

ROUNDS, QUICK_ROUNDS = 10, 3
SECONDS: dict[Name, int] = {"wrk": 4, "ab": 2}
QUICK_SECONDS: dict[Name, int] = {"wrk": 2, "ab": 2}
LEAST_S = 2  # the sampler looks a few times a second
START_AND_STOP_S = 3.5  # for the estimate
_AROUND_S = 1.3  # a generator's warm-up and its start


@dataclass(frozen=True)
class Plan:
    """What is to be measured. ``seed`` decides the order; ``skipped`` says what cannot be."""

    kind: str  # quick, full
    rows: tuple[Row, ...]
    skipped: dict[str, str]
    rounds: int
    seconds: dict[Name, int]
    seed: int
    budget_s: float | None = None

    @property
    def sites(self) -> list[Site]:
        return list({row.site.name: row.site for row in self.rows}.values())

    def order(self, round_: int) -> list[tuple[Site, list[Row]]]:
        """Return each site with its rows, both shuffled, the same for one seed."""
        chance = random.Random(f"{self.seed}/{round_}")  # noqa: S311 - an order, no secret
        return [(site, chance.sample(found, len(found))) for site, found in self._grouped(chance)]

    def _grouped(self, chance: random.Random) -> list[tuple[Site, list[Row]]]:
        shuffled = chance.sample(self.sites, len(self.sites))
        return [
            (site, [row for row in self.rows if row.site.name == site.name]) for site in shuffled
        ]

    def round_s(self) -> float:
        each_s = sum(seconds + _AROUND_S for seconds in self.seconds.values())
        return len(self.sites) * START_AND_STOP_S + len(self.rows) * each_s


def plan(
    kind: str,
    *,
    patterns: Sequence[str] = (),
    generators: Sequence[str] = (),
    rounds: int | None = None,
    seconds: int | None = None,
    minutes: float | None = None,
    seed: int,
) -> Plan:
    """Return the ``quick`` or ``full`` campaign with whatever was asked for in its place.

    A row whose toolchain this machine lacks is skipped, with the remedy. Raises ``BadInput``.
    """
    for option, value in (("--rounds", rounds), ("--seconds", seconds), ("--minutes", minutes)):
        if value is not None and value <= 0:
            raise BadInput(f"{option} {value:g} measures nothing: give a positive number")
    if seconds is not None and seconds < LEAST_S:
        raise BadInput(f"--seconds {seconds} is too short to sample: give {LEAST_S} or more")
    names = _generators(generators)
    usual = SECONDS if kind == "full" else QUICK_SECONDS
    rows = chosen(patterns)
    skipped = {row.name: why for row in rows if (why := serving.missing(row.site))}
    return Plan(
        kind=kind,
        rows=tuple(row for row in rows if row.name not in skipped),
        skipped=skipped,
        rounds=rounds or (ROUNDS if kind == "full" else QUICK_ROUNDS),
        seconds={name: seconds or usual[name] for name in names},
        seed=seed,
        budget_s=None if minutes is None else minutes * 60,
    )


def _generators(given: Sequence[str]) -> tuple[Name, ...]:
    for name in given:
        if name not in GENERATORS:
            raise BadInput(f"--generator {name}: it is one of {', '.join(GENERATORS)}")
    return tuple(name for name in get_args(Name) if name in given or not given)


def run(plan: Plan, pinned: Pinning, keep: Callable[[Cell], None]) -> int:
    """Measure every round there is time for; return how many those were."""
    begun_s = time.monotonic()
    for round_ in range(1, plan.rounds + 1):
        for site, rows in plan.order(round_):
            _run_site(plan, pinned, round_, site, rows, keep)
        elapsed_s = time.monotonic() - begun_s
        if plan.budget_s is not None and elapsed_s * (round_ + 1) / round_ > plan.budget_s:
            return round_
    return plan.rounds


def _run_site(
    plan: Plan,
    pinned: Pinning,
    round_: int,
    site: Site,
    rows: Sequence[Row],
    keep: Callable[[Cell], None],
) -> None:
    try:
        with serving.served(site, cpus=server_cpus(pinned, site.cpus)) as served:
            for row in rows:
                for generator in plan.seconds:
                    _run_row(plan, pinned, round_, row, generator, served, keep)
    except (StartFailed, BadInput) as failure:
        log_tail = getattr(failure, "log_tail", None)
        for row in rows:
            for generator in plan.seconds:
                keep(
                    replace(
                        _cell(row, generator, round_, 1), failure=str(failure), log_tail=log_tail
                    )
                )


def _run_row(
    plan: Plan,
    pinned: Pinning,
    round_: int,
    row: Row,
    generator: Name,
    served: Served,
    keep: Callable[[Cell], None],
) -> None:
    """Measure until an attempt counts; as often, and after such rests, as in a campaign."""
    for attempt, rest_s in enumerate(RESTS_S, start=1):
        if plan.kind == "full":
            time.sleep(rest_s)
        cell = measured(
            _cell(row, generator, round_, attempt),
            row,
            served,
            GENERATORS[generator],
            plan.seconds[generator],
            pinned,
        )
        keep(cell)
        if cell.valid:
            return


def _cell(row: Row, generator: Name, round_: int, attempt: int) -> Cell:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return Cell(row.name, generator, round_, attempt, started)
