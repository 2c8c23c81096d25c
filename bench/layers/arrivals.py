"""Counting every message: what was sent, what came, and what came twice."""

from dataclasses import dataclass, field


@dataclass
class Arrivals:
    """Ids are counted up from 0 by the sender. ``times_s`` holds each first arrival's latency."""

    sent: int = 0
    duplicates: int = 0
    times_s: list[float] = field(default_factory=list)
    _next: int = 0  # everything below has come
    _ahead: set[int] = field(default_factory=set)  # came before one that is below it

    def note(self, number: int, took_s: float | None = None) -> bool:
        """Count one arrival; say whether it is the first of its id."""
        if number == self._next:
            self._next += 1
            while self._ahead and self._next in self._ahead:
                self._ahead.remove(self._next)
                self._next += 1
        elif number < self._next or number in self._ahead:
            self.duplicates += 1
            return False
        else:
            self._ahead.add(number)
        if took_s is not None:
            self.times_s.append(took_s)
        return True

    @property
    def received(self) -> int:
        return self._next + len(self._ahead)

    @property
    def complete(self) -> bool:
        return self.received >= self.sent

    def counts(self) -> dict[str, int]:
        return {
            "sent": self.sent,
            "received": self.received,
            "duplicates": self.duplicates,
        }


def percentile(values: list[float], share: float) -> float:
    """Return the value that ``share`` of the ``values`` do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, -(-int(share * 1e6) * len(ordered) // 10**6) - 1))]


def latencies(times_s: list[float]) -> dict[str, float]:
    """Return p50 and p99 in microseconds; empty where nothing came."""
    if not times_s:
        return {}
    return {
        "p50_us": 1e6 * percentile(times_s, 0.50),
        "p99_us": 1e6 * percentile(times_s, 0.99),
    }
