"""When requests are meant to be sent, in seconds after the start. Pure."""

import random
from collections.abc import Iterator

PROCESSES = ("constant", "poisson")


def constant(rate_rps: float, duration_s: float, first: int = 0, step: int = 1) -> Iterator[float]:
    """Yield ``k / rate_rps`` for every k that falls before ``duration_s``.

    Each time is computed from k and not from the one before, so that nothing accumulates. Of
    ``step`` workers, the one called ``first`` takes every so manyeth: together they send all.
    """
    k = first
    while (at := k / rate_rps) < duration_s:
        yield at
        k += step


def poisson(rate_rps: float, duration_s: float, seed: int | None = None) -> Iterator[float]:
    """Yield arrivals of users who know nothing of each other: the gaps are exponential."""
    gap = random.Random(seed).expovariate  # noqa: S311 - no secret depends on it
    at = gap(rate_rps)
    while at < duration_s:
        yield at
        at += gap(rate_rps)


def arrivals(
    process: str, rate_rps: float, duration_s: float, worker: int = 0, workers: int = 1
) -> Iterator[float]:
    """Return the arrivals of the ``process`` called so that are this worker's.

    Poisson processes add up to one: each worker has its own, at its part of the rate.
    """
    if process == "constant":
        return constant(rate_rps, duration_s, worker, workers)
    return poisson(rate_rps / workers, duration_s)
