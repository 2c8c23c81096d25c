"""One cell, measured once by one tool on one column, as frozen dataclasses that go to JSON."""

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.balancing.cells import Column, EchoCell, HttpCell
from bench.balancing.kernel import Tcp
from bench.errors import BadInput
from bench.records import Gate, Machine, Usage, missed, write_json
from bench.tools.tool import Outcome

SCHEMA = 1


@dataclass(frozen=True)
class Reading:
    """``variant`` is None for a server of one's own, of which nothing but the replies is known.

    ``failure`` is set where there is no outcome, with the end of the logs in ``log_tail``.
    """

    column: str
    variant: str | None
    cell: str
    tool: str
    clients: int
    round: int
    attempt: int
    started: str  # ISO 8601, UTC
    outcome: Outcome | None = None
    server: Usage | None = None
    generator: Usage | None = None
    machine: Machine | None = None
    tcp: Tcp | None = None
    gates: tuple[Gate, ...] = ()
    failure: str | None = None
    log_tail: str | None = None
    command: tuple[str, ...] = ()
    schema: int = SCHEMA

    @property
    def valid(self) -> bool:
        return self.failure is None and not missed(self.gates)

    @property
    def file_name(self) -> str:
        words = f"{self.round:02d}-{self.cell}-{self.tool}-{self.column}-{self.attempt}"
        return re.sub(r"[^\w.-]+", "_", words) + ".json"


@dataclass(frozen=True)
class Study:
    """What was set out to be measured, and on what: ``study.json`` beside ``raw/``.

    The column of a server of one's own has no variant. ``missing`` is what could not take part,
    with the reason.
    """

    title: str
    kind: str  # http, echo
    reference: str | None  # the study that is repeated
    started: str
    finished: str | None
    rounds: int
    columns: tuple[Column, ...]
    cells: tuple[HttpCell | EchoCell, ...]
    tools: tuple[str, ...]
    missing: dict[str, str]
    server_cores: int
    generator_cores: int
    configurations: dict[str, dict[str, str]]
    provenance: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA


def write(reading: Reading, folder: Path) -> None:
    """Write ``reading`` into ``folder`` in one step: a reader never sees half a file."""
    write_json(asdict(reading), folder / reading.file_name)


def write_study(study: Study, folder: Path) -> None:
    write_json(asdict(study), folder / "study.json")


def read(folder: Path) -> list[Reading]:
    """Return every reading in ``folder``, in the order of their names."""
    return [_reading(json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def read_study(folder: Path) -> Study:
    """Return the study in ``folder``; raise ``BadInput`` where the folder holds none."""
    path = folder / "study.json"
    if not path.is_file():
        raise BadInput(f"{folder} is not a results folder of `bench http` or `echo`: no study.json")
    data = json.loads(path.read_text())
    asked = {"http": HttpCell, "echo": EchoCell}[data["kind"]]
    known = {
        "columns": tuple(Column(**one) for one in data["columns"]),
        "cells": tuple(asked(**one) for one in data["cells"]),
        "tools": tuple(data["tools"]),
    }
    return Study(**{**data, **known})


_PARTS = {
    "outcome": Outcome,
    "server": Usage,
    "generator": Usage,
    "machine": Machine,
    "tcp": Tcp,
}


def _reading(data: dict[str, Any]) -> Reading:
    parts = {name: kind(**data[name]) if data[name] else None for name, kind in _PARTS.items()}
    gates = tuple(Gate(**gate) for gate in data["gates"])
    return Reading(**{**data, **parts, "gates": gates, "command": tuple(data["command"])})
