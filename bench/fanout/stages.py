"""Every stage counts what came and what became of it: whether the sums agree. Pure.

    publisher --layer--> hub --outboxes--> clients' sockets --> the subscribers' own counts

A hub's counters are known where one process serves.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.fanout.outcome import Outcome

LAYER = "publishers to hub"
HUB = "hub to clients"
SUBSCRIBERS = "clients' own counts"


@dataclass(frozen=True)
class Stage:
    """``came`` into a stage, and ``told`` for is what it passed on or said it dropped.

    ``most`` is what may have come where that is not known to the message: visitors choose topics of
    their own. ``in_words`` says where ``told`` is from.
    """

    name: str
    came: int
    told: int
    in_words: str
    most: int | None = None

    @property
    def off(self) -> int:
        """By how many the sums do not agree."""
        most = self.came if self.most is None else self.most
        return max(0, self.came - self.told, self.told - most)


def stages(one: Outcome) -> Iterator[Stage]:
    """Yield the stages of a cell that was measured."""
    counts, churned = one.counts, one.churned
    if one.hub is not None and one.expected:
        hub = {name: value or 0 for name, value in one.hub.items()}
        layer_dropped = hub["layer_dropped"] + int(one.publisher["layer_dropped"] or 0)
        yield Stage(
            LAYER,
            one.wanted,
            hub["received"] + layer_dropped,
            f"{hub['received']:,} received and {layer_dropped:,} dropped by the layer",
            one.published if churned.get("visits") else None,
        )
        got = counts["received"] + churned["received"]
        yield Stage(
            HUB,
            hub["delivered"],
            got + hub["dropped"] + hub["abandoned"],
            f"{got:,} got by clients, {hub['dropped']:,} dropped for slow ones, "
            f"{hub['abandoned']:,} left behind by those who went",
        )
    unique = counts["received"] - counts["duplicated"]
    missed = counts["lost"] + counts["missing"]
    yield Stage(
        SUBSCRIBERS,
        one.expected,
        unique + missed,
        f"{unique:,} got by clients who stayed, {missed:,} missed",
    )
