"""Rounds: every column once, in shuffled order, and on it every cell by every tool."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from bench.balancing.cells import Column, EchoCell, HttpCell
from bench.balancing.measure import measured
from bench.balancing.reading import Reading
from bench.balancing.site import serving
from bench.campaign import RESTS_S, Failed
from bench.errors import BadInput
from bench.provenance import Pinning, anonymous
from bench.spreads import INTERVAL_ROUNDS
from bench.tools.tool import Tool

_STARTS = 2  # a column that failed to start in so many rounds is not started again


@dataclass(frozen=True)
class Plan:
    """What is to be measured. ``own`` is the address of a server of one's own, for one column.

    ``seed`` decides the order, so that it can be had again.
    """

    columns: tuple[Column, ...]
    cells: tuple[HttpCell | EchoCell, ...]
    tools: tuple[Tool, ...]
    rounds: int
    seed: int
    own: str | None = None

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise BadInput(f"--rounds {self.rounds} measures nothing: give 1 or more")

    @property
    def rests_s(self) -> tuple[float, ...]:
        """Before each attempt at a cell: somebody who waits for one round sees one more at once."""
        return RESTS_S if self.rounds >= INTERVAL_ROUNDS else (0.0, 0.0)

    def pairs(self) -> list[tuple[HttpCell | EchoCell, Tool]]:
        """Return what is measured on each column."""
        return [(cell, tool) for cell in self.cells for tool in self.tools if _fits(cell, tool)]

    def order(self, round_: int) -> list[Column]:
        return self._chance(round_).sample(self.columns, len(self.columns))

    def order_on(self, round_: int, column: Column) -> list[tuple[HttpCell | EchoCell, Tool]]:
        """Return the pairs in the order of ``round_``: the tools of a cell stay together.

        So that the difference between two tools is one of neighbours in time.
        """
        chance = self._chance(round_, column.name)
        found = []
        for cell in chance.sample(self.cells, len(self.cells)):
            mine = [pair for pair in self.pairs() if pair[0] is cell]
            found += chance.sample(mine, len(mine))
        return found

    def _chance(self, *what: object) -> Random:
        return Random("/".join(map(str, (self.seed, *what))))  # noqa: S311 - an order, no secret


def _fits(cell: HttpCell | EchoCell, tool: Tool) -> bool:
    if isinstance(cell, HttpCell) and cell.only is None:
        # A tool without a count has cells of its own; it takes part where it alone was asked for.
        return tool.counts_requests or cell.requests == 0
    return isinstance(cell, EchoCell) or cell.only == tool.name


@dataclass
class Rounds:
    """Rounds under way. ``keep`` is given each reading as it comes, ``tell`` what is being done."""

    plan: Plan
    pinned: Pinning
    keep: Callable[[Reading], None]
    tell: Callable[[str], None]

    def go(self) -> None:
        self._failed: dict[str, int] = {}
        for round_ in range(1, self.plan.rounds + 1):
            for column in self.plan.order(round_):
                self._column(round_, column)

    def _column(self, round_: int, column: Column) -> None:
        pairs = self.plan.order_on(round_, column)
        if self._failed.get(column.name, 0) >= _STARTS:
            return
        self.tell(f"round {round_}/{self.plan.rounds} · {column.name}")
        variant = None if self.plan.own else column.variant
        try:
            with serving(variant, self.plan.own, self.pinned) as site:
                for cell, tool in pairs:
                    self.tell(f"round {round_} · {column.name} · {cell.name} · {tool.name}")
                    blank = _blank(round_, column, variant, cell, tool)
                    for reading in measured(
                        site, cell, tool, self.pinned, blank, self.plan.rests_s
                    ):
                        self.keep(reading)
        except Failed as failure:
            self._failed[column.name] = self._failed.get(column.name, 0) + 1
            for reading in _unmeasured(round_, column, variant, pairs, failure):
                self.keep(reading)


def _unmeasured(
    round_: int,
    column: Column,
    variant: str | None,
    pairs: Sequence[tuple[HttpCell | EchoCell, Tool]],
    failure: Failed,
) -> Iterator[Reading]:
    for cell, tool in pairs:
        yield replace(
            _blank(round_, column, variant, cell, tool),
            failure=anonymous(failure.reason),
            log_tail=anonymous(failure.log_tail or ""),
        )


def _blank(
    round_: int, column: Column, variant: str | None, cell: HttpCell | EchoCell, tool: Tool
) -> Reading:
    clients = cell.clients if isinstance(cell, HttpCell) else cell.connections
    return Reading(column.name, variant, cell.name, tool.name, clients, round_, 1, started="")
