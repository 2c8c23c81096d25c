"""One line of a table, and the names of the tables."""

from dataclasses import dataclass
from typing import Literal

from bench import reference
from bench.baselines.sites import Site
from bench.errors import BadInput

Table = Literal["concurrency", "sockets", "frameworks", "work", "ladder", "servers"]
CLIENTS = 64  # of the talk's tables

TABLES: dict[Table, str] = {
    "concurrency": "nginx alone, by how many clients ask at a time",
    "sockets": "From nginx to the server: protocols and sockets",
    "frameworks": "A hello in each framework",
    "work": "Doing work: Django without middleware",
    "ladder": "Where a Django request over ASGI spends its time, on uvicorn",
    "servers": "The other ASGI servers on the same rungs",
}


@dataclass(frozen=True)
class Row:
    """One line of a table: what is asked of which site, by how many clients.

    ``then`` is the line of the talk's tables that it stands beside: its ``row`` and ``app``.
    ``why`` says what the step is, on the ladder.
    """

    name: str
    table: Table
    title: str
    site: Site
    port: int
    path: str = "/"
    clients: int = CLIENTS
    then: tuple[str, str | None] | None = None
    why: str = ""

    @property
    def then_rps(self) -> float | None:
        """What the talk published."""
        return _published(self) if self.then else None


def _published(row: Row) -> float:
    for line in reference.framework_baseline():
        app = (line.app or "").partition(" (")[0] or None
        over = (line.protocol, line.socket) if line.row == "sockets" else None
        if (line.row, app) == row.then or (line.row == "sockets" and over == row.then):
            return line.requests_rps
    raise BadInput(f"{reference.FOLDER}: nothing published for {row.then}")
