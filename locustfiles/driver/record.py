"""What happened to each request, counted while the test runs and summed up when it has ended.

Times are seconds on one monotonic clock; what is kept of them is whole microseconds. Nothing here
touches a socket or a clock: the driver hands in the times.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hdrh.histogram import HdrHistogram

LOWEST_US = 1
HIGHEST_US = 3_600_000_000  # an hour
SIGNIFICANT_FIGURES = 3
MICROSECONDS = 1_000_000

TIMEOUT = "timeout"  # the one failure that is not an error: no reply came


def histogram(values_us: Iterable[int]) -> HdrHistogram:
    """Return the HDR histogram of ``values_us``. A value recorded with its count is cheaper."""
    recorded = HdrHistogram(LOWEST_US, HIGHEST_US, SIGNIFICANT_FIGURES)
    for value, count in Counter(values_us).items():
        recorded.record_value(min(value, HIGHEST_US), count)
    return recorded


def payload(recorded: HdrHistogram) -> str:
    """Return ``recorded`` as HdrHistogram V2, base64."""
    return bytes(recorded.encode()).decode()


def percentile_ms(values_us: Iterable[int], percentile: float) -> float | None:
    """Return the nearest-rank percentile in milliseconds, None of no values."""
    ordered = sorted(values_us)
    if not ordered:
        return None
    rank = -(-len(ordered) * percentile // 100)
    return ordered[max(0, int(rank) - 1)] / 1000


def _microseconds(seconds: float) -> int:
    return max(0, round(seconds * MICROSECONDS))


@dataclass
class Second:
    """The requests that were meant to be sent in one second of the test."""

    sent: int = 0
    error: int = 0
    timeout: int = 0
    dropped: int = 0
    ok_us: "array[int]" = field(default_factory=lambda: array("I"))

    def as_bucket(self, start_s: float) -> dict[str, Any]:
        return {
            "start_s": start_s,
            "sent": self.sent,
            "ok": len(self.ok_us),
            "error": self.error,
            "timeout": self.timeout,
            "dropped": self.dropped,
            "p50_ms": percentile_ms(self.ok_us, 50),
            "p99_ms": percentile_ms(self.ok_us, 99),
        }


class Recorder:
    """Counts one test, from ``start`` on; what was meant to be sent before that was the warm-up.

    After the test ``sent == ok + error + timeout`` and ``scheduled == sent + dropped`` hold by
    construction: each request is handed in once as sent and once as finished, or once as dropped.
    """

    def __init__(self, start: float, *, scheduled: bool = True) -> None:
        self.start = start
        self.scheduled = scheduled  # a closed loop has no schedule, so nothing lags behind it
        self.seconds: list[Second] = []
        self.lag_us = array("I")
        self.failed_us = array("I")
        self.error_kinds: Counter[str] = Counter()
        self.in_flight = 0
        self.last = start  # the latest reply, or send
        self._area = 0.0  # requests in flight x seconds
        self._changed = start

    def sent(self, intended: float, now: float) -> None:
        """A request that should have left at ``intended`` leaves ``now``."""
        if intended < self.start:
            return
        self._second(intended).sent += 1
        if self.scheduled:
            self.lag_us.append(_microseconds(now - intended))
        self._step(now, 1)

    def dropped(self, intended: float) -> None:
        """A request that should have left at ``intended`` never will: too many are in flight."""
        if intended >= self.start:
            self._second(intended).dropped += 1

    def finished(self, intended: float, now: float, failure: str | None) -> None:
        """A request that was sent has its reply, or has failed as ``failure`` says."""
        if intended < self.start:
            return
        second = self._second(intended)
        latency_us = _microseconds(now - intended)
        if failure is None:
            second.ok_us.append(latency_us)
        else:
            self.failed_us.append(latency_us)
            if failure == TIMEOUT:
                second.timeout += 1
            else:
                second.error += 1
                self.error_kinds[failure] += 1
        self._step(now, -1)

    def inflight_mean(self) -> float:
        """Return the mean number of requests in flight, weighted by time, until the last reply."""
        elapsed_s = self.last - self.start
        return self._area / elapsed_s if elapsed_s > 0 else 0.0

    def ok_us(self) -> "array[int]":
        """Return the latencies of the successes."""
        values = array("I")
        for second in self.seconds:
            values.extend(second.ok_us)
        return values

    def counts(self) -> dict[str, int]:
        """Return scheduled, sent, ok, error, timeout and dropped."""
        sent = sum(second.sent for second in self.seconds)
        dropped = sum(second.dropped for second in self.seconds)
        return {
            "scheduled": sent + dropped,
            "sent": sent,
            "ok": sum(len(second.ok_us) for second in self.seconds),
            "error": sum(second.error for second in self.seconds),
            "timeout": sum(second.timeout for second in self.seconds),
            "dropped": dropped,
        }

    def seconds_us(self) -> list[str]:
        """Return the histogram of each second, for a master to add up."""
        return [payload(histogram(second.ok_us)) for second in self.seconds]

    def as_json(self) -> dict[str, Any]:
        """Return the part of the driver's JSON that was counted here."""
        return {
            **self.counts(),
            "started_monotonic_s": self.start,
            "elapsed_s": self.last - self.start,
            "error_kinds": dict(self.error_kinds.most_common()),
            "latency_us": payload(histogram(self.ok_us())),
            "error_latency_us": payload(histogram(self.failed_us)),
            "lag_us": payload(histogram(self.lag_us)),
            "inflight_mean": self.inflight_mean(),
            "buckets": [
                second.as_bucket(float(number)) for number, second in enumerate(self.seconds)
            ],
        }

    def _second(self, intended: float) -> Second:
        number = int(intended - self.start)
        while len(self.seconds) <= number:
            self.seconds.append(Second())
        return self.seconds[number]

    def _step(self, now: float, change: int) -> None:
        self._area += self.in_flight * (now - self._changed)
        self._changed = self.last = now
        self.in_flight += change
