"""Finds the highest rate a server holds, by trying one rate after another. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from statistics import median

STRIDE = 1.15  # how far to look for the other end of the bracket
PRECISION = 1.03  # a bracket this narrow is narrow enough
HELD_SLOPE = 0.01
FEWEST_IN_QUARTER = 5


@dataclass(frozen=True)
class Bracket:
    """``held_rps`` is the highest rate that held, ``failed_rps`` the lowest that did not."""

    held_rps: float | None = None
    failed_rps: float | None = None

    def after(self, rate_rps: float, *, held: bool) -> "Bracket":
        """Return the bracket once ``rate_rps`` has been tried."""
        if held:
            return replace(self, held_rps=max(rate_rps, self.held_rps or 0.0))
        return replace(self, failed_rps=min(rate_rps, self.failed_rps or rate_rps))

    def next_rps(self, estimate_rps: float) -> float | None:
        """Return the rate to try next, ``None`` when the bracket is narrow enough.

        The first is the estimate. Then the search strides away from it until it has one rate that
        holds and one that does not, and halves what is between them.
        """
        if self.held_rps is None and self.failed_rps is None:
            return estimate_rps
        if self.failed_rps is None:
            assert self.held_rps is not None
            return self.held_rps * STRIDE
        if self.held_rps is None:
            return self.failed_rps / STRIDE
        if self.failed_rps <= self.held_rps * PRECISION:
            return None
        return sqrt(self.held_rps * self.failed_rps)


def delay_slope(latencies_s: Sequence[Sequence[float]], seconds: float) -> float | None:
    """Return by how many seconds per second replies got later over a step of ``seconds``.

    ``latencies_s`` has the latencies of the step's four quarters, by the time the request was
    meant to be sent. At ``1 + x`` times what a server can do its backlog, and with it the latency,
    grows by ``x`` seconds per second: a slope of 0.01 is 99 % of the offered rate achieved. The
    medians of the second and of the last quarter are compared, half a step apart. ``None`` where
    a quarter has too few replies to say.
    """
    second, last = latencies_s[1], latencies_s[3]
    if min(len(second), len(last)) < FEWEST_IN_QUARTER:
        return None
    return (median(last) - median(second)) / (seconds / 2)


def grew_steadily(latencies_s: Sequence[Sequence[float]], seconds: float) -> bool:
    """Return whether replies got later from each quarter to the next, as they do under overload.

    A stall of something else comes once: its delay jumps up in one quarter, and drains in the
    next. A rate that failed without growing steadily deserves another try.
    """
    slope = delay_slope(latencies_s, seconds)
    if slope is None or min(map(len, latencies_s)) < FEWEST_IN_QUARTER:
        return False
    steps = [median(later) - median(earlier) for earlier, later in pairwise(latencies_s)]
    return slope > 0 and min(steps) > slope * seconds / 4 / 2


def holds(failed: int, slope: float | None) -> bool:
    """Return whether a rate held: nothing failed, timed out or was dropped, and no growing backlog.

    A slope of up to ``HELD_SLOPE`` is none: the server answered 99 % of what was offered or more.
    """
    return failed == 0 and slope is not None and slope <= HELD_SLOPE
