"""Echo over WebSockets, in callbacks of gevent's event loop. Every reply is checked.

The protocol is websockets' own Sans-I/O implementation; only the sockets are ours.
"""

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import gevent
from gevent.event import Event
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from .deadlines import Deadlines
from .record import MICROSECONDS, TIMEOUT
from .stream import CLOSED, Stream
from .target import Target
from .ticker import clock

Done = Callable[[str | None, int], None]

RETRY_S = 0.01
CORRUPT = "corrupt"
OUT_OF_ORDER = "out of order"
NOT_CONNECTED = "not connected"


@dataclass(frozen=True)
class Echo:
    """What is sent where. ``messages`` a socket are sent before it is replaced, 0 for no end.

    ``opening`` handshakes are under way at once.
    """

    target: Target
    origin: str
    connections: int
    timeout_s: float
    message_bytes: int
    messages: int = 0
    opening: int = 25


@dataclass(eq=False)
class Message:
    """A message under way."""

    text: bytes
    done: Done
    socket: "Socket | None" = None  # None: it waits for one that is being opened
    overtaken: bool = False  # a later message was answered first


@dataclass(eq=False)
class Verdict:
    """What became of one socket's messages, for the counters of 2016."""

    opened: bool = False
    lost: int = 0
    corrupt: int = 0
    out_of_order: int = 0
    unasked: int = 0  # replies, of the corrupt ones: nothing was under way

    @property
    def name(self) -> str:
        """Return the worst that happened, in the order in which 2016 looked for it."""
        if not self.opened:
            return "failed"
        if self.lost:
            return "incomplete"
        if self.corrupt:
            return "corrupt"
        return "out_of_order" if self.out_of_order else "good"


def tally(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return how many sockets were good, incomplete, corrupt, out of order, or failed to open."""
    names = Counter(verdict.name for verdict in verdicts)
    return {
        name: names[name] for name in ("good", "incomplete", "corrupt", "out_of_order", "failed")
    }


def place(text: bytes, expected: Iterable[bytes]) -> int | None:
    """Return where among the ``expected`` replies ``text`` stands: 0 is in order, None nowhere."""
    for position, each in enumerate(expected):
        if each == text:
            return position
    return None


@dataclass
class WebSocketClient:
    """Sends messages over a fixed number of sockets, each to the one with nothing under way."""

    loop: Any
    echo: Echo
    sockets: list["Socket"] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    connect_us: "array[int]" = field(default_factory=lambda: array("I"))
    reasons: Counter[str] = field(default_factory=Counter)  # why sockets did not open
    socket_class: "Callable[[Any], Socket] | None" = None

    def __post_init__(self) -> None:
        self.socket_class = self.socket_class or Socket
        self.deadlines = Deadlines(self.loop, self.echo.timeout_s, lambda each: each.expire())
        self.message_deadlines = Deadlines(self.loop, self.echo.timeout_s, self._give_up)
        self.waiting: deque[Message] = deque()
        self.free: deque[Socket] = deque()
        self.turn = 0
        self.numbers = count()
        self.missing = self.echo.connections
        self.opening = 0
        self.ready = Event()
        self.closing = False

    def open(self) -> None:
        """Open all sockets, a few at a time, and wait until each is open or has failed."""
        self._open_more()
        self.ready.wait()

    def send(self, done: Done) -> None:
        """Send the next message. ``done`` is called once, from the event loop."""
        socket = self._next()
        if socket is None and not self.opening:
            # Not at once: a closed loop with nobody to talk to would spin.
            gevent.spawn_later(RETRY_S, done, NOT_CONNECTED, 0)
            return
        message = self.message(done)
        if socket is None:
            self.waiting.append(message)
        else:
            socket.send(message)

    def message(self, done: Done) -> Message:
        """Return the next message, whose time runs from here on. No two are the same."""
        text = b"%016x" % next(self.numbers)
        message = Message(text.ljust(self.echo.message_bytes, b"."), done)
        self.message_deadlines.add(message)
        return message

    def close(self) -> None:
        """Close every socket; messages under way are reported as timeouts."""
        self.closing = True
        self.message_deadlines.close()
        self.deadlines.close()
        for socket in list(self.sockets):
            socket.close()

    def settled(self, socket: "Socket", reason: str | None) -> None:
        """A handshake is over: ``reason`` says why it failed."""
        self.opening -= 1
        if reason is None:
            self.sockets.append(socket)
            self.free.append(socket)
            while self.waiting and socket.is_usable:
                socket.send(self.waiting.popleft())
        else:
            self.reasons[reason] += 1
        self._open_more()
        if not self.opening and not self.sockets:
            while self.waiting:
                self._give_up(self.waiting[0], NOT_CONNECTED)

    def replace(self, socket: "Socket") -> None:
        """A socket has sent all it should: open another in its place."""
        self.forget(socket)
        self.missing += 1
        self._open_more()

    def forget(self, socket: "Socket") -> None:
        if socket in self.sockets:
            self.sockets.remove(socket)

    def _give_up(self, message: Message, failure: str = TIMEOUT) -> None:
        if message.socket is not None:
            message.socket.give_up(message)
            return
        self.waiting.remove(message)
        self.message_deadlines.remove(message)
        message.done(failure, 0)

    def _open_more(self) -> None:
        while self.missing and self.opening < self.echo.opening and not self.closing:
            self.missing -= 1
            self.opening += 1
            self.socket_class(self)
        if not self.opening:
            self.ready.set()

    def _next(self) -> "Socket | None":
        while self.free:
            socket = self.free.popleft()
            if socket.is_usable and not socket.under_way:
                return socket
        usable = [socket for socket in self.sockets if socket.is_usable]
        if not usable:
            return None
        self.turn += 1
        return usable[self.turn % len(usable)]


class Socket:
    """One WebSocket."""

    def __init__(self, client: WebSocketClient) -> None:
        self.client = client
        self.verdict = Verdict()
        client.verdicts.append(self.verdict)
        self.under_way: deque[Message] = deque()
        self.given_up: set[bytes] = set()
        self.sent = 0
        self.parts: list[bytes] = []
        self.began = clock()
        self.protocol = ClientProtocol(
            parse_uri(client.echo.target.url.replace("http", "ws", 1)), origin=client.echo.origin
        )
        self.stream = Stream(client.loop, client.echo.target, self._received, self._ended)
        client.deadlines.add(self)
        self.protocol.send_request(self.protocol.connect())
        self._flush()

    @property
    def is_usable(self) -> bool:
        return self.protocol.state is State.OPEN and not self._is_spent

    @property
    def _is_spent(self) -> bool:
        return 0 < self.client.echo.messages <= self.sent

    def send(self, message: Message) -> None:
        self.sent += 1
        message.socket = self
        self.under_way.append(message)
        self.protocol.send_text(message.text)
        self._flush()

    def expire(self) -> None:
        """The handshake took too long."""
        self._fail(TIMEOUT)

    def give_up(self, message: Message) -> None:
        """The reply to ``message`` took too long."""
        self.under_way.remove(message)
        self.given_up.add(message.text)
        self.verdict.lost += 1
        self._finish(message, TIMEOUT)

    def close(self) -> None:
        if self.protocol.state is State.OPEN:
            self.protocol.send_close(1000)
            self._flush()
        self.stream.close()
        self.client.forget(self)

    def _flush(self) -> None:
        for data in self.protocol.data_to_send():
            if data:  # an empty one stands for half-closing, which closing does anyway
                self.stream.write(data)

    def _received(self, data: bytes) -> None:
        opening = self.protocol.state is State.CONNECTING
        self.protocol.receive_data(data)
        if opening and not self._opened():
            return
        self._flush()
        for event in self.protocol.events_received():
            if isinstance(event, Frame):
                self._frame(event)
        if self._is_over:
            close = self.protocol.close_rcvd
            self._ended(f"closed {close.code}" if close else CLOSED)

    @property
    def _is_over(self) -> bool:
        return self.protocol.state is not State.OPEN

    def _opened(self) -> bool:
        """Return whether the handshake has succeeded; report it if it has, or has failed."""
        if self.protocol.state is State.OPEN:
            self.verdict.opened = True
            self.client.deadlines.remove(self)
            self.client.connect_us.append(round((clock() - self.began) * MICROSECONDS))
            self.client.settled(self, None)
            return True
        if self.protocol.handshake_exc is not None:
            self._fail(_handshake_failure(self.protocol.handshake_exc))
        return False

    def _fail(self, reason: str) -> None:
        """The handshake has failed. One that the end of the test cuts short has not."""
        if self.client.closing:
            self.client.verdicts.remove(self.verdict)
        self.client.deadlines.remove(self)
        self.stream.close()
        self.client.settled(self, reason)

    def _frame(self, frame: Frame) -> None:
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return
        self.parts.append(bytes(frame.data))
        if frame.fin:
            text, self.parts = b"".join(self.parts), []
            self._reply(text)

    def _reply(self, text: bytes) -> None:
        if text in self.given_up:
            self.given_up.remove(text)  # too late, and counted as such
            return
        if not self.under_way:
            self.verdict.corrupt += 1
            self.verdict.unasked += 1
            return
        position = place(text, (message.text for message in self.under_way))
        for _ in range(position or 0):
            # Late or lost? It is out of order only if it comes after all.
            self.under_way[0].overtaken = True
            self.under_way.rotate(-1)
        message = self.under_way.popleft()
        self.under_way.rotate(position or 0)
        failure = CORRUPT if position is None else OUT_OF_ORDER if message.overtaken else None
        self.verdict.corrupt += failure == CORRUPT
        self.verdict.out_of_order += failure == OUT_OF_ORDER
        if not self.under_way and self._is_spent:
            # First: what follows this reply may find no other socket, and must see one coming.
            self._retire()
        self._finish(message, failure)

    def _retire(self) -> None:
        """It has sent all it should, and has every reply."""
        self.close()
        self.client.replace(self)

    def _finish(self, message: Message, failure: str | None) -> None:
        self.client.message_deadlines.remove(message)
        if not self.under_way and self.is_usable:
            self.client.free.append(self)
        message.done(failure, len(message.text))

    def _ended(self, kind: str) -> None:
        if not self.verdict.opened:
            self._fail(kind)
            return
        self.stream.close()
        self.verdict.lost += len(self.under_way)
        self.client.replace(self)
        while self.under_way:
            self._finish(self.under_way.popleft(), kind)


def _handshake_failure(error: Exception) -> str:
    if isinstance(error, InvalidStatus):
        return f"handshake {error.response.status_code}"
    return "bad handshake" if isinstance(error, InvalidHandshake) else type(error).__name__


def probe(loop: Any, echo: Echo) -> str | None:
    """Open one socket, and return why that failed; ``None`` if it did not."""
    client = WebSocketClient(loop, echo)
    try:
        client.open()
        return next(iter(client.reasons), None)
    finally:
        client.close()
