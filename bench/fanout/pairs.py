"""Which cells differ in the one thing of interest. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.fanout.outcome import Outcome
from bench.fanout.results import Results

HUB_OVER_GROUP = "hub over group"
SOCKET_OVER_POLL = "WebSocket over long polling"
MANY = 1_000  # topics a user, as in the study


@dataclass(frozen=True)
class Pair:
    """``what`` is compared ``where``, with the outcomes of either side."""

    what: str
    where: str
    first: list[Outcome]
    second: list[Outcome]

    @property
    def same_load(self) -> bool:
        """Whether as many messages were published on both sides: else each is near its own most."""
        return self.first[0].rate is not None and self.first[0].rate == self.second[0].rate


def pairs(results: Results, question: str) -> Iterator[Pair]:
    """Yield what can be compared among the cells of ``question``."""
    cells = list(results.cells(question).values())
    for first in cells:
        for second in cells:
            if named := compared(first[0], second[0]):
                yield Pair(*named, first, second)


def compared(first: Outcome, second: Outcome) -> tuple[str, str] | None:
    """Return what the two compare and where, if they differ in the one thing of interest."""
    load = ("users", "subscriptions", "topics", "message_bytes", "processes", "layer")
    if any(getattr(first, name) != getattr(second, name) for name in load):
        return None
    where = first.where
    ways = (first.delivery, second.delivery, first.transport, second.transport)
    if ways[:2] == ("hub", "group") and first.transport == second.transport:
        return HUB_OVER_GROUP, f"{where}, {first.transport}"
    if ways[2:] == ("websocket", "polling") and first.delivery == second.delivery:
        many = f", {first.subscriptions:,} topics a user" if first.subscriptions >= MANY else ""
        return SOCKET_OVER_POLL, f"{where}, {first.delivery}{many}"
    return None
