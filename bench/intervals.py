"""Intervals for the ratio of two deployments, exact for the few rounds that a campaign has.

Hodges-Lehmann estimates with the intervals that belong to them: Wilcoxon's signed-rank test for
rounds that pair two arms, the Mann-Whitney test for two campaigns whose rounds have nothing to do
with each other. No bootstrap (it covers 92 to 94 % where 95 are promised, at ten rounds) and no
normal approximation: the null distributions are counted out.

Source of the method: Hollander and Wolfe, Nonparametric Statistical Methods, sections 3.2, 3.3,
4.2 and 4.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, exp, log
from statistics import median


@dataclass(frozen=True)
class Interval:
    """An estimate between its bounds.

    ``confidence`` is the one achieved, which with ranks comes in steps and is never below the one
    asked for. ``n`` is the number of rounds behind it (of the smaller sample, where there are two).
    """

    estimate: float
    low: float
    high: float
    confidence: float
    n: int

    def contains(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def reach(self) -> float:
        """By what factor the end of a ratio's interval that is further from 1 is away from it."""
        return max(self.high, 1 / self.low)

    def beyond(self, factor: float) -> bool:
        """Whether all of a ratio's interval is more than ``factor`` times away from 1."""
        return self.low > factor or self.high < 1 / factor


def interval(log_ratios: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Return the centre of paired ``log_ratios``, one a round, with its signed-rank interval.

    None where there are too few rounds for ``confidence``: 95 % takes six.
    """
    count = len(log_ratios)
    return _between(
        sorted(_walsh_averages(log_ratios)), _signed_rank_counts(count), confidence, count
    )


def shift(
    before: Sequence[float], after: Sequence[float], confidence: float = 0.95
) -> Interval | None:
    """Return how far ``after`` lies above ``before``, two independent samples of logarithms.

    None where the samples are too small for ``confidence``: 95 % takes four each.
    """
    differences = sorted(high - low for high in after for low in before)
    smaller = min(len(before), len(after))
    return _between(differences, _mann_whitney_counts(len(before), len(after)), confidence, smaller)


def ratio_interval(ratios: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Return the centre of paired ``ratios`` with its interval; see ``interval``."""
    return exponential(interval([log(ratio) for ratio in ratios], confidence))


def ratio_shift(
    before: Sequence[float], after: Sequence[float], confidence: float = 0.95
) -> Interval | None:
    """Return by what factor ``after`` lies above ``before``; see ``shift``."""
    return exponential(shift(_logs(before), _logs(after), confidence))


def exponential(logs: Interval | None) -> Interval | None:
    """Return an interval in log units as one of ratios."""
    if logs is None:
        return None
    return Interval(exp(logs.estimate), exp(logs.low), exp(logs.high), logs.confidence, logs.n)


def _logs(values: Sequence[float]) -> list[float]:
    return [log(value) for value in values]


def _walsh_averages(values: Sequence[float]) -> list[float]:
    """The mean of each pair of values, each value paired with itself too."""
    return [(values[i] + values[j]) / 2 for i in range(len(values)) for j in range(i, len(values))]


def _between(
    ordered: Sequence[float], counts: tuple[int, ...], confidence: float, n: int
) -> Interval | None:
    """Return the median of ``ordered`` between its ``rank``-th values from either end.

    ``counts[t]`` says how many of the equally likely arrangements give the rank statistic ``t``.
    """
    rank, achieved = _rank(counts, confidence)
    if rank == 0:
        return None
    return Interval(median(ordered), ordered[rank - 1], ordered[-rank], achieved, n)


def _rank(counts: tuple[int, ...], confidence: float) -> tuple[int, float]:
    """Return the deepest rank whose two tails still fit outside ``confidence``, and what it gives.

    Rank 0 means that even the extremes promise less.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not at {confidence}")
    total, tail, rank, achieved = sum(counts), 0, 0, 1.0
    for count in counts[: len(counts) // 2]:
        tail += count
        if 1 - 2 * tail / total < confidence:
            break
        rank, achieved = rank + 1, 1 - 2 * tail / total
    return rank, achieved


@lru_cache
def _signed_rank_counts(n: int) -> tuple[int, ...]:
    """Return, for each sum, how many subsets of the ranks 1 to ``n`` have it."""
    counts = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for total in range(len(counts) - 1, rank - 1, -1):
            counts[total] += counts[total - rank]
    return tuple(counts)


@lru_cache
def _mann_whitney_counts(m: int, n: int) -> tuple[int, ...]:
    """Return, for each U, how many arrangements of ``m`` and ``n`` values give it.

    The coefficients of the Gaussian binomial, a quotient of products of ``1 - q**k`` that divides
    evenly: multiply by each factor of the numerator, divide by each of the denominator.
    """
    counts = [1] + [0] * (m * n)
    for k in range(1, m + 1):
        for total in range(m * n, n + k - 1, -1):
            counts[total] -= counts[total - n - k]
        for total in range(k, m * n + 1):
            counts[total] += counts[total - k]
    assert sum(counts) == comb(m + n, n)
    return tuple(counts)
