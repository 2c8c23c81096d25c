"""One timeout for many: cheaper than a timer for each, as all of them wait equally long."""

from collections.abc import Callable, Hashable
from typing import Any

from .ticker import clock

SWEEP_S = 0.02  # how late a timeout may be noticed


class Deadlines:
    """Calls ``expire`` with whoever was added and not removed within ``timeout_s``.

    They expire in the order in which they were added, so only the first few are ever looked at.
    """

    def __init__(self, loop: Any, timeout_s: float, expire: Callable[[Any], None]) -> None:
        self._timeout_s = timeout_s
        self._expire = expire
        self._waiting: dict[Hashable, float] = {}
        self._timer = loop.timer(SWEEP_S, SWEEP_S)
        self._timer.start(self._sweep)

    def add(self, who: Hashable) -> None:
        self._waiting[who] = clock() + self._timeout_s

    def remove(self, who: Hashable) -> None:
        del self._waiting[who]

    def close(self) -> None:
        """Expire everybody now."""
        self._timer.stop()
        self._timer.close()
        for who in list(self._waiting):
            self._expire(who)

    def _sweep(self) -> None:
        now = clock()
        late = []
        for who, deadline in self._waiting.items():
            if deadline > now:
                break
            late.append(who)
        for who in late:
            self._expire(who)
