"""Figures over rounds: the median with its range, and ratios that are taken round by round. Pure.

What the campaigns of single parts (layers, fan-out, baselines) share. A campaign of deployments has
cells of its own, which keep every round apart: `bench.cells`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.intervals import Interval, ratio_interval

INTERVAL_ROUNDS = 10  # fewer rounds give medians and ranges, and no interval


@dataclass(frozen=True)
class Spread:
    """The median of the rounds that count, with the least and the greatest of them."""

    median: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class Ratio:
    """One figure to another, paired by round; ``interval`` where there are rounds enough."""

    spread: Spread
    interval: Interval | None

    @property
    def estimate(self) -> float:
        return self.interval.estimate if self.interval else self.spread.median


def spread(numbers: Sequence[float]) -> Spread | None:
    """Return the spread of ``numbers``, one a round; None where there are none."""
    if not numbers:
        return None
    return Spread(median(numbers), min(numbers), max(numbers), len(numbers))


def ratio_over(ratios: Sequence[float], *, enough: bool) -> Ratio | None:
    """Return the ratio behind ``ratios``, one a round, with an interval where ``enough``."""
    found = spread(ratios)
    if found is None:
        return None
    # A ratio of 0 has no logarithm, and so no interval.
    usable = enough and min(ratios) > 0
    return Ratio(found, ratio_interval(ratios) if usable else None)


def times(found: Ratio | None) -> str:
    """Return a ratio's median, range and interval, for a table; nothing for one not taken."""
    if found is None:
        return ""
    text = f"{found.spread.median:.3g}x ({found.spread.low:.3g} to {found.spread.high:.3g})"
    if found.interval is None:
        return text
    return f"{text}, 95 % [{found.interval.low:.3g}, {found.interval.high:.3g}]"
