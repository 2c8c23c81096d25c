"""What a fan-out campaign leaves behind, and the medians and ratios that it supports."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench import spreads
from bench.errors import BadInput
from bench.fanout.floor import Floor
from bench.fanout.outcome import Outcome
from bench.records import Gate, Machine, Usage, write_json
from bench.spreads import INTERVAL_ROUNDS, Ratio, Spread, ratio_over

SCHEMA = 1
FILE = "fanout.json"
STUDY = "Rubris WebSocket baseline, 2016"
# 1,091,172 + 1,089,323 messages/s at two clients, on 12 busy server cores.
STUDY_PER_CORE = 182_000
AIM_PER_CORE = 400_000
RATE = "deliveries_per_server_cpu_s"


@dataclass(frozen=True)
class Results:
    """``fanout.json``; each outcome stands in ``raw/`` as well, from the moment it was taken."""

    started: str  # ISO 8601, UTC
    finished: str | None  # None: it was interrupted
    rounds: int
    questions: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    floors: tuple[Floor, ...]
    provenance: dict[str, Any]
    schema: int = SCHEMA

    @property
    def quick(self) -> bool:
        return self.rounds < INTERVAL_ROUNDS

    def of(self, question: str) -> Iterator[Outcome]:
        return (one for one in self.outcomes if one.question == question)

    def cells(self, question: str) -> dict[str, list[Outcome]]:
        """Return cell -> its outcomes, in the order in which cells were first measured."""
        found: dict[str, list[Outcome]] = {}
        for one in sorted(self.of(question), key=lambda one: (one.cell, one.round)):
            found.setdefault(one.cell, []).append(one)
        return found


def renewed(results: Results, again: Results) -> Results:
    """Return ``results`` with the outcomes of ``again`` in place of those of the same questions."""
    if again.rounds != results.rounds:
        raise BadInput(f"{again.rounds} rounds cannot stand in for {results.rounds}")
    kept = (one for one in results.outcomes if one.question not in again.questions)
    return replace(results, outcomes=(*kept, *again.outcomes))


def spread(outcomes: Sequence[Outcome], figure: str) -> Spread | None:
    """Return the spread of ``figure`` over the valid outcomes; None where there is none."""
    return spreads.spread(list(_by_round(outcomes, figure).values()))


def ratio(
    results: Results, first: Sequence[Outcome], second: Sequence[Outcome], figure: str
) -> Ratio | None:
    """Return the first's ``figure`` over the second's, of each round in which both are valid."""
    above, below = _by_round(first, figure), _by_round(second, figure)
    ratios = [above[number] / below[number] for number in above if below.get(number)]
    return ratio_over(ratios, enough=not results.quick)


def _by_round(outcomes: Sequence[Outcome], figure: str) -> dict[int, float]:
    """Return round -> ``figure``, of valid outcomes that have it."""
    return {
        one.round: value
        for one in outcomes
        if one.valid and (value := getattr(one, figure)) is not None
    }


def write(results: Results, folder: Path) -> Path:
    """Write ``fanout.json`` in one step: a reader never sees half a file."""
    return write_json(asdict(results), folder / FILE)


def write_raw(outcome: Outcome, folder: Path, attempt: int = 1) -> None:
    """Write one outcome into ``raw/``: those that missed a gate, too."""
    name = f"{outcome.round:02d}-{outcome.cell}-{attempt}.json"
    (folder / "raw" / name).write_text(json.dumps(asdict(outcome), indent=1) + "\n")


def read(folder: Path) -> Results:
    """Return the results in ``folder``; raise ``BadInput`` where it holds none."""
    path = folder / FILE
    if not path.is_file():
        raise BadInput(f"{folder} is not a results folder of `bench fanout`: no {FILE}")
    data = json.loads(path.read_text())
    outcomes = tuple(outcome_from(one) for one in data["outcomes"])
    floors = tuple(Floor(**one) for one in data["floors"])
    given = {**data, "questions": tuple(data["questions"])}
    return Results(**{**given, "outcomes": outcomes, "floors": floors})


def outcome_from(data: dict[str, Any]) -> Outcome:
    """Return the ``Outcome`` in ``data``, which is one gone through JSON."""
    parts = {
        name: kind(**data[name]) if data[name] else None
        for name, kind in (("server", Usage), ("generator", Usage), ("machine", Machine))
    }
    gates = tuple(Gate(**gate) for gate in data["gates"])
    return Outcome(**{**data, **parts, "gates": gates, "ramp": tuple(data["ramp"])})
