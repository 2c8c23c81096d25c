"""What a campaign of baselines leaves behind, and the figures it supports."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.baselines.generators import Count
from bench.errors import BadInput
from bench.records import Gate, Machine, Usage, missed, write_json
from bench.spreads import Ratio, Spread, ratio_over, spread
from bench.verdict import MISSING_SHARE

SCHEMA = 1
FILE = "baselines.json"


@dataclass(frozen=True)
class Cell:
    """One row under one generator in one round, one attempt. ``failure``: nothing was measured."""

    row: str
    generator: str
    round: int
    attempt: int
    started: str  # ISO 8601, UTC
    count: Count | None = None
    server: Usage | None = None
    driver: Usage | None = None  # the generator's process
    machine: Machine | None = None
    gates: tuple[Gate, ...] = ()
    failure: str | None = None
    log_tail: str | None = None
    command: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        return self.failure is None and not missed(self.gates)

    @property
    def why_not(self) -> str:
        """Why it does not count; empty where it does."""
        return self.failure or "; ".join(gate.reason for gate in missed(self.gates))

    @property
    def rps(self) -> float | None:
        return self.count.rps if self.count else None

    @property
    def user_us(self) -> float | None:
        """CPU time in user mode for each reply, of everything that serves: nginx included."""
        return self._per_reply(lambda used: used.cpu_user_s)

    @property
    def system_us(self) -> float | None:
        return self._per_reply(lambda used: used.cpu_system_s)

    @property
    def cpu_us(self) -> float | None:
        return self._per_reply(lambda used: used.cpu_s)

    @property
    def rps_per_cpu_s(self) -> float | None:
        """Replies for each CPU second of everything that serves."""
        return 1e6 / self.cpu_us if self.cpu_us else None

    @property
    def p99_ms(self) -> float | None:
        return self.count.p99_ms if self.count else None

    def _per_reply(self, part: Callable[[Usage], float]) -> float | None:
        if not self.server or not self.machine or not self.count or not self.count.ok:
            return None
        return part(self.server) / (self.count.rps * self.machine.wall_s) * 1e6


@dataclass(frozen=True)
class Results:
    """``baselines.json``. ``skipped``: row -> what the machine lacks; ``hops``: see there."""

    started: str  # ISO 8601, UTC
    finished: str | None  # None: it was interrupted
    kind: str  # quick, full
    rounds: int
    seconds: dict[str, int]  # generator -> how long it measures
    rows: tuple[str, ...]
    cells: tuple[Cell, ...]
    provenance: dict[str, Any]
    skipped: dict[str, str] = field(default_factory=dict)
    hops: dict[str, dict[str, int]] = field(default_factory=dict)  # row -> {hops, threads}
    schema: int = SCHEMA

    @property
    def quick(self) -> bool:
        return self.kind != "full"

    @property
    def generator(self) -> str:
        """The one whose figures are meant where none is named: wrk, if it was there."""
        return "wrk" if "wrk" in self.seconds else next(iter(self.seconds))


def short(results: Results) -> dict[tuple[str, str], str]:
    """Return each row and generator that lacks more than one round in ten, and why.

    Of a quick campaign: that lacks every one.
    """
    allowed = results.rounds - 1 if results.quick else int(MISSING_SHARE * results.rounds)
    found = {}
    for row in results.rows:
        for generator in results.seconds:
            valid = len(counted(results, row, generator))
            if results.rounds - valid > allowed:
                why = _why(results.cells, row, generator)
                found[row, generator] = f"{valid} of {results.rounds} rounds: {why}"
    return found


def _why(cells: Iterable[Cell], row: str, generator: str) -> str:
    """Return why the last attempt that does not count does not."""
    tried = [one for one in cells if (one.row, one.generator) == (row, generator)]
    left_out = [one for one in tried if not one.valid]
    return left_out[-1].why_not if left_out else "not measured"


def counted(results: Results, row: str, generator: str = "") -> dict[int, Cell]:
    """Return the valid cell of each round."""
    wanted = (row, generator or results.generator)
    return {
        cell.round: cell
        for cell in results.cells
        if (cell.row, cell.generator) == wanted and cell.valid
    }


def underused(results: Results, row: str, generator: str = "") -> bool:
    """Whether the server had time to spare in half the valid rounds or more.

    Then the rate is what its clients asked for, and no more than a lower bound of what it can do.
    """
    judged = [
        gate.ok
        for cell in counted(results, row, generator).values()
        for gate in cell.gates
        if gate.name == "capacity"
    ]
    return 2 * judged.count(False) >= len(judged) > 0


def values(results: Results, row: str, figure: str, generator: str = "") -> dict[int, float]:
    """Return ``figure`` (a property of ``Cell``) of each valid round that has it."""
    found = {
        number: getattr(cell, figure) for number, cell in counted(results, row, generator).items()
    }
    return {number: value for number, value in found.items() if value is not None}


def figure(results: Results, row: str, name: str, generator: str = "") -> Spread | None:
    return spread(list(values(results, row, name, generator).values()))


def ratio(results: Results, row: str, base: str, name: str) -> Ratio | None:
    """Return ``row``'s figure over ``base``'s, round by round; None where no round has both."""
    above, below = values(results, row, name), values(results, base, name)
    ratios = [above[number] / below[number] for number in above if below.get(number)]
    return ratio_over(ratios, enough=not results.quick)


def write(results: Results, folder: Path) -> Path:
    """Write ``baselines.json`` in one step: a reader never sees half a file."""
    return write_json(asdict(results), folder / FILE)


def read(folder: Path) -> Results:
    """Return the results in ``folder``; raise ``BadInput`` where it holds none."""
    path = folder / FILE
    if not path.is_file():
        raise BadInput(f"{folder} is not a results folder of `bench baselines`: no {FILE}")
    data = json.loads(path.read_text())
    cells = tuple(cell_from(cell) for cell in data["cells"])
    return Results(**{**data, "cells": cells, "rows": tuple(data["rows"])})


def cell_from(data: dict[str, Any]) -> Cell:
    """Return the ``Cell`` in ``data``, which is one gone through JSON."""
    return Cell(
        **{
            **data,
            "count": Count(**data["count"]) if data["count"] else None,
            "server": Usage(**data["server"]) if data["server"] else None,
            "driver": Usage(**data["driver"]) if data["driver"] else None,
            "machine": Machine(**data["machine"]) if data["machine"] else None,
            "gates": tuple(Gate(**gate) for gate in data["gates"]),
            "command": tuple(data["command"]),
        }
    )
