"""Finds the fewest clients that keep a server busy, as TCP Vegas finds a window. Pure.

With ``n`` clients in flight and nobody queueing, a reply takes the base latency. Whatever it takes
longer is spent in a queue, so ``n * (1 - base / latency)`` of the clients are queueing. A server
is busy as soon as a few are, and every client beyond them adds latency and no throughput. (L.
Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", 1995.)
"""

import math
from dataclasses import dataclass, replace

ALPHA = 2.0  # fewer queueing than this: the server may have idled, add a client
BETA = 4.0  # more than this: they only wait, take one away
BACK_OFF = 0.5  # after a failed request
HIGHEST = 400
WINDOW_S = 0.5
WINDOW_REPLIES = 100  # a window lasts until it has so many, or four times as long
BASE_AGE_S = 30.0  # then the base is measured anew, with one client
SETTLED = 6  # windows without a wish to grow


@dataclass(frozen=True)
class Window:
    """What half a second at one number of clients gave. ``median_s`` is None without a reply."""

    clients: int
    seconds: float
    ok: int
    failed: int
    median_s: float | None

    @property
    def ok_rps(self) -> float:
        return self.ok / self.seconds


@dataclass(frozen=True)
class Vegas:
    """The state after some windows. ``clients`` is how many to run in the next one."""

    clients: int = 1
    base_s: float | None = None
    base_age_s: float = 0.0
    doubling: bool = True  # until the first queue, or the first failure
    settled: int = 0
    resume: int | None = None  # while the base is measured anew: the clients to go back to

    def after(self, window: Window) -> "Vegas":
        """Return the state that follows ``window``."""
        if window.failed or window.median_s is None:
            fewer = max(1, int(window.clients * BACK_OFF))
            return replace(self, clients=fewer, doubling=False, settled=0, resume=None)
        if self.resume is not None:
            return replace(
                self, clients=self.resume, base_s=window.median_s, base_age_s=0.0, resume=None
            )
        state = replace(self, base_age_s=self.base_age_s + window.seconds)
        if state.base_s is None or window.median_s <= state.base_s:
            state = replace(state, base_s=window.median_s, base_age_s=0.0)
        if state.base_age_s >= BASE_AGE_S:
            return replace(state, clients=1, resume=window.clients)
        assert state.base_s is not None
        return state._resized(window.clients, queueing(window, state.base_s))

    @property
    def is_settled(self) -> bool:
        return self.settled >= SETTLED

    def _resized(self, clients: int, queueing: float) -> "Vegas":
        if queueing < ALPHA and clients < HIGHEST:
            wanted = min(HIGHEST, clients * 2 if self.doubling else clients + 1)
            return replace(self, clients=wanted, settled=0)
        surplus = max(0, math.ceil(queueing - BETA))
        if not self.doubling:
            surplus = min(1, surplus)  # only doubling goes far too far
        fewer = max(1, clients - surplus)
        return replace(self, clients=fewer, doubling=False, settled=self.settled + 1)


def queueing(window: Window, base_s: float) -> float:
    """Return how many of the clients were queueing on average."""
    assert window.median_s is not None
    return window.clients * (1 - min(1.0, base_s / window.median_s))
