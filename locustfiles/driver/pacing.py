"""Who sends when: an open loop that follows a schedule, a closed loop that follows the replies."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from gevent.event import Event

from .record import TIMEOUT, Recorder
from .ticker import Ticker, clock

# How many late arrivals leave in one go before the event loop may look at replies again.
CATCH_UP = 64
# What a client of a closed loop waits after a failure: a lone one costs nothing to speak of, and
# ten clients whom a server refuses make ten errors a second instead of ten thousand.
REST_S = 0.01
LONGEST_REST_S = 1.0

Done = Callable[[str | None, int], None]
# intended, now, failure, body length: what is told about each reply, such as to Locust's statistics
Report = Callable[[float, float, str | None, int], None]


class Client(Protocol):
    """Sends one request, and calls ``done`` once, later and from the event loop."""

    def send(self, done: Done) -> None: ...


class Loop:
    """Sends through ``client``, counts in ``recorder``. ``over`` is set after the last reply."""

    ticker: Ticker

    def __init__(self, client: Client, recorder: Recorder, report: Report) -> None:
        self.client = client
        self.recorder = recorder
        self.report = report
        self.in_flight = 0  # the warm-up's requests too, which the recorder does not count
        self.stopping = False
        self.over = Event()

    def stop(self) -> None:
        """Send no more. What is in flight is waited for."""
        if not self.stopping:
            self.stopping = True
            self.ticker.close()
        self._settle()

    def _send(self, intended: float, now: float) -> None:
        def done(failure: str | None, length: int) -> None:
            replied = clock()
            self.in_flight -= 1
            self.recorder.finished(intended, replied, failure)
            if intended >= self.recorder.start:
                self.report(intended, replied, failure, length)
            self._follow(replied, failure)

        self.in_flight += 1
        self.recorder.sent(intended, now)
        self.client.send(done)

    def _follow(self, now: float, failure: str | None) -> None:
        """A reply has come, or the request has failed."""
        self._settle()

    def _settle(self) -> None:
        if self.stopping and not self.in_flight:
            self.over.set()


class OpenLoop(Loop):
    """Sends at the times of ``schedule``, whatever the replies do.

    An arrival that the event loop comes to late is sent late and never skipped, and its latency
    counts from the time it was meant for. Only where ``max_in_flight`` requests wait for their
    reply is an arrival dropped, and counted as dropped.
    """

    def __init__(
        self,
        loop: Any,
        client: Client,
        recorder: Recorder,
        report: Report,
        schedule: Iterator[float],
        max_in_flight: int,
    ) -> None:
        super().__init__(client, recorder, report)
        self.schedule = schedule
        self.max_in_flight = max_in_flight
        self.next = next(schedule, None)
        self.ticker = Ticker(loop, self._ring)
        self._wind()

    def _wind(self) -> None:
        if self.next is None:
            self.stop()
        elif not self.stopping:
            self.ticker.set(self.next)

    def _ring(self) -> None:
        for _ in range(CATCH_UP):
            now = clock()
            if self.next is None or self.next > now:
                break
            self._arrive(self.next, now)
            self.next = next(self.schedule, None)
        self._wind()

    def _arrive(self, intended: float, now: float) -> None:
        if self.in_flight >= self.max_in_flight:
            self.recorder.dropped(intended)
            if intended >= self.recorder.start:
                self.report(intended, now, "dropped", 0)
        else:
            self._send(intended, now)


class ClosedLoop(Loop):
    """Keeps ``clients`` requests in flight from ``begin`` to ``end``.

    Each reply makes room for the next request, and ``requests`` is how many there are to be counted
    at most. A client whose request has failed rests before the next one, longer and longer while
    nothing succeeds (``rest_s``): against a server that refuses, a closed loop would otherwise do
    nothing but spin and count errors. One that timed out has waited long enough.
    """

    def __init__(
        self,
        loop: Any,
        client: Client,
        recorder: Recorder,
        report: Report,
        clients: int,
        begin: float,
        end: float,
        requests: float = float("inf"),
    ) -> None:
        super().__init__(client, recorder, report)
        self.loop = loop
        self.clients = clients
        self.end = end
        self.left = requests
        self.failed_in_a_row = 0
        self.resting: set[Any] = set()  # the timers of those who wait after a failure
        self.ticker = Ticker(loop, self._ring)
        self.ticker.set(begin)

    def resize(self, clients: int) -> None:
        """Run ``clients`` from now on. Surplus ones leave with their reply."""
        self.clients = clients
        self._fill()

    def _ring(self) -> None:
        """It is time to begin, or to end."""
        if clock() >= self.end:
            self.stop()
            return
        if self.end < float("inf"):
            self.ticker.set(self.end)
        self._fill()

    def stop(self) -> None:
        for timer in self.resting:
            timer.close()
        self.resting.clear()
        super().stop()

    def _fill(self) -> None:
        while not self.stopping and self.in_flight + len(self.resting) < self.clients:
            if not self.left:
                self.stop()
                return
            now = clock()
            if now >= self.recorder.start:
                self.left -= 1
            self._send(now, now)

    def _follow(self, now: float, failure: str | None) -> None:
        self.failed_in_a_row = self.failed_in_a_row + 1 if failure else 0
        if self.stopping or now >= self.end:
            self._settle()
            return
        if failure and failure != TIMEOUT:
            self._rest()
        self._fill()

    def _rest(self) -> None:
        timer = self.loop.timer(rest_s(self.failed_in_a_row, self.clients))
        self.resting.add(timer)
        timer.start(self._rested, timer)

    def _rested(self, timer: Any) -> None:
        self.resting.discard(timer)
        timer.close()
        self._fill()


def rest_s(failed_in_a_row: int, clients: int) -> float:
    """Return how long a client rests: twice as long each time all have failed again. Pure."""
    return min(LONGEST_REST_S, REST_S * 2.0 ** min(20, failed_in_a_row // clients))
