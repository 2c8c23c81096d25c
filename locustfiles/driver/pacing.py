"""Who sends when: an open loop that follows a schedule, a closed loop that follows the replies."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from gevent.event import Event

from .record import Recorder
from .ticker import Ticker, clock

# How many late arrivals leave in one go before the event loop may look at replies again.
CATCH_UP = 64

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
            self._follow(replied)

        self.in_flight += 1
        self.recorder.sent(intended, now)
        self.client.send(done)

    def _follow(self, now: float) -> None:
        """A reply has come."""
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

    Each reply makes room for the next request.
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
    ) -> None:
        super().__init__(client, recorder, report)
        self.clients = clients
        self.end = end
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

    def _fill(self) -> None:
        while not self.stopping and self.in_flight < self.clients:
            now = clock()
            self._send(now, now)

    def _follow(self, now: float) -> None:
        if self.stopping or now >= self.end:
            self._settle()
        else:
            self._fill()
