"""A batch of sockets, each of which opens, sends its messages one by one, and closes.

It ends when the last of them has closed, so what it takes is the time for a piece of work and not
the work of a piece of time: the shape of the WebSocket balancing study.
"""

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from gevent.event import Event

from .pacing import Report
from .record import Recorder
from .ticker import clock
from .websocket_client import Echo, Socket, Verdict, WebSocketClient

OPENING, SENDING, CLOSING, WHOLE = "opening", "sending", "closing", "whole"
NORMAL = "closed 1000"


@dataclass
class Totals:
    """What came of the sockets of all batches of one run."""

    verdicts: list[Verdict] = field(default_factory=list)
    connect_us: "array[int]" = field(default_factory=lambda: array("I"))
    socket_errors: Counter[str] = field(default_factory=Counter)  # "opening: refused" and so on
    phases_s: Counter[str] = field(default_factory=Counter)
    batches: int = 0

    def close(self) -> None:
        """Nothing stays open between batches."""


class Batch(WebSocketClient):
    """One batch under way. ``over`` is set when every socket is gone and every message counted.

    With ``detail`` nobody sends before all sockets are open, and nobody closes before all have
    sent. A message that never left, because its socket did not open or went down, is *dropped*.
    """

    def __init__(
        self,
        loop: Any,
        echo: Echo,
        totals: Totals,
        recorder: Recorder,
        report: Report,
        *,
        detail: bool,
    ) -> None:
        super().__init__(
            loop,
            echo,
            verdicts=totals.verdicts,
            connect_us=totals.connect_us,
            socket_class=BatchSocket,
        )
        self.totals = totals
        self.recorder = recorder
        self.report = report
        self.detail = detail
        self.over = Event()
        self.gone = 0
        self.waiting_sockets: list[BatchSocket] = []  # for the others, at the end of a phase
        self.phase = OPENING
        self.began = self.changed = clock()
        totals.batches += 1
        self._open_more()

    def stop(self) -> None:
        """End it now. What is under way counts as a timeout, what has not left as dropped."""
        self.closing = True
        self.message_deadlines.close()
        for socket in list(self.sockets):
            socket.leave("stopped")
        self.deadlines.close()
        self._drop(self.missing * self.echo.messages)
        self._end()

    def settled(self, socket: Any, reason: str | None) -> None:
        self.opening -= 1
        if reason is None:
            self.sockets.append(socket)
            self._arrived(socket)
        else:
            self.totals.socket_errors[f"{OPENING}: {reason}"] += 1
            self._drop(self.echo.messages)
            self.lost(socket)
        self._open_more()

    def has_sent(self, socket: "BatchSocket") -> None:
        """``socket`` has every reply, or has given up on it."""
        if self.detail:
            self._arrived(socket)
        else:
            socket.begin_to_close()

    def send_next(self, socket: "BatchSocket") -> None:
        """Send the next message of ``socket``, and the one after it when the reply has come."""
        now = clock()

        def done(failure: str | None, length: int) -> None:
            replied = clock()
            self.recorder.finished(now, replied, failure)
            self.report(now, replied, failure, length)
            socket.proceed()

        self.recorder.sent(now, now)
        socket.send(self.message(done))

    def lost(self, socket: "BatchSocket", reason: str | None = None) -> None:
        """``socket`` is gone: as it should, or for ``reason``."""
        self.forget(socket)
        self.gone += 1
        if reason is not None:
            self.totals.socket_errors[reason] += 1
            self._drop(self.echo.messages - socket.sent)
        if socket in self.waiting_sockets:
            self.waiting_sockets.remove(socket)
        self._release()
        if self.gone == self.echo.connections:
            self._end()

    def replace(self, socket: Any) -> None:
        """Nobody takes the place of a socket that went down."""

    def _arrived(self, socket: "BatchSocket") -> None:
        """``socket`` is through with the phase."""
        if self.detail:
            self.waiting_sockets.append(socket)
            self._release()
        else:
            socket.proceed()

    def _release(self) -> None:
        """Begin the next phase if all who are left have come to the end of this one."""
        if self.gone + len(self.waiting_sockets) < self.echo.connections or self.closing:
            return
        waiting, self.waiting_sockets = self.waiting_sockets, []
        if waiting:
            self._turn(SENDING if self.phase == OPENING else CLOSING)
        for socket in waiting:
            if self.phase == SENDING:
                socket.proceed()
            else:
                socket.begin_to_close()

    def _turn(self, phase: str) -> None:
        now = clock()
        self.totals.phases_s[self.phase] += now - self.changed
        self.phase, self.changed = phase, now

    def _drop(self, messages: int) -> None:
        now = clock()
        for _ in range(messages):
            self.recorder.dropped(now)
            self.report(now, now, "dropped", 0)

    def _end(self) -> None:
        if self.over.is_set():
            return
        now = clock()
        if self.detail:
            self.totals.phases_s[self.phase] += now - self.changed
        self.totals.phases_s[WHOLE] += now - self.began
        self.closing = True
        self.message_deadlines.close()
        self.deadlines.close()
        self.over.set()


class BatchSocket(Socket):
    """Sends one message at a time, and closes in good order: frame, frame, end of the stream."""

    client: Batch
    is_closing = False
    is_gone = False

    def proceed(self) -> None:
        """Do what comes next: a message, or the end of sending."""
        if self.is_gone or self.is_closing:
            return
        if self.sent < self.client.echo.messages:
            self.client.send_next(self)
        else:
            self.client.has_sent(self)

    def begin_to_close(self) -> None:
        self.is_closing = True
        self.client.deadlines.add(self)
        self.protocol.send_close(1000)
        self._flush()

    def expire(self) -> None:
        if self.is_closing:
            self._closed("timeout")
        else:
            super().expire()

    def leave(self, reason: str) -> None:
        """Go at once."""
        if self.is_closing:
            self._closed(reason)
        else:
            self._ended(reason)

    def _retire(self) -> None:
        """Nothing: ``proceed`` has seen to it."""

    @property
    def _is_over(self) -> bool:
        # While it waits for the other side's close frame, a ping may still come.
        awaits = self.is_closing and self.protocol.close_rcvd is None
        return super()._is_over and not (awaits and self.protocol.parser_exc is None)

    def _ended(self, kind: str) -> None:
        if self.is_closing:
            self._closed(None if kind == NORMAL else kind)
        elif not self.verdict.opened:
            self._fail(kind)
        elif not self.is_gone:
            self.is_gone = True
            super()._ended(kind)
            self.client.lost(self, f"{SENDING}: {kind}")

    def _closed(self, fault: str | None) -> None:
        if not self.is_gone:
            self.is_gone = True
            self.client.deadlines.remove(self)
            self.stream.close()
            self.client.lost(self, fault and f"{CLOSING}: {fault}")
