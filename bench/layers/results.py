"""What a run leaves behind, and the medians and ratios that it supports. Pure but for the files."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.errors import BadInput
from bench.layers.cell import Cell
from bench.layers.measures import MEASURES
from bench.records import write_json
from bench.spreads import INTERVAL_ROUNDS, Ratio, ratio_over

SCHEMA = 3
CPU = "cpu_us_per_message"


@dataclass(frozen=True)
class Results:
    """``layers.json``: every sample by round, and how they were taken."""

    started: str  # ISO 8601, UTC
    finished: str | None  # None: it was interrupted
    rounds: int
    quick: bool
    seed: int
    measures: tuple[str, ...]
    peers: tuple[str, ...]
    cells: tuple[Cell, ...]
    provenance: dict[str, Any]
    resumed: tuple[str, ...] = ()  # when, and at which commit, it went on after an interruption
    schema: int = SCHEMA

    def of(self, measure: str, peer: str) -> list[Cell]:
        """Return every attempt at ``measure`` on ``peer``."""
        return [cell for cell in self.cells if (cell.measure, cell.peer) == (measure, peer)]


def values(results: Results, measure: str, peer: str, figure: str) -> dict[int, float]:
    """Return ``figure`` of each round that has one that counts."""
    found = {}
    for cell in results.of(measure, peer):
        if cell.counts:
            value = cell.cpu_us_per_message if figure == CPU else cell.figures.get(figure)
            if value is not None:
                found[cell.round] = value
    return found


def ratio(
    results: Results, measure: str, peers: tuple[str, str], figure: str | None = None
) -> Ratio | None:
    """Return the first peer's ``figure`` over the second's, round by round; None without both."""
    figure = figure or MEASURES[measure].figure
    first, second = (values(results, measure, peer, figure) for peer in peers)
    ratios = [first[number] / second[number] for number in first if second.get(number)]
    return ratio_over(ratios, enough=len(ratios) >= INTERVAL_ROUNDS)


def losses(results: Results, measure: str, peer: str) -> tuple[int, int, int] | None:
    """Return what was sent, lost and received twice over all attempts; None where there are none.

    A message lost on a disturbed machine is lost, too.
    """
    cells = [cell for cell in results.of(measure, peer) if cell.sent is not None]
    if not cells:
        return None
    return (
        sum(cell.sent or 0 for cell in cells),
        sum(cell.lost or 0 for cell in cells),
        sum(cell.duplicates or 0 for cell in cells),
    )


def write(results: Results, folder: Path) -> Path:
    """Write ``layers.json`` in one step: a reader never sees half a file."""
    return write_json(asdict(results), folder / "layers.json")


def read(folder: Path) -> Results:
    """Return the results in ``folder``; raise ``BadInput`` where it holds none."""
    path = folder / "layers.json"
    if not path.is_file():
        raise BadInput(f"{folder} is not a results folder of `bench layers`: no layers.json")
    data = json.loads(path.read_text())
    if data.get("schema") != SCHEMA:
        raise BadInput(f"{path} has another form than this version writes: measure again")
    cells = tuple(Cell(**{**one, "discarded": tuple(one["discarded"])}) for one in data["cells"])
    names = {key: tuple(data[key]) for key in ("measures", "peers", "resumed")}
    return Results(**{**data, **names, "cells": cells})
