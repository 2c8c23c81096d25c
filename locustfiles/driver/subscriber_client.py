"""Sockets that subscribe to topics and check what they are sent, in gevent's event loop."""

import json
import logging
import time
from dataclasses import dataclass
from random import Random
from typing import Any

from gevent.event import AsyncResult
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from .deliveries import SUBSCRIBED, Layout, Subscriber, Tally
from .stream import CLOSED, Stream
from .target import Target

# The server holds back once 1 MiB is under way; a client that tells it half-way is never waited
# for.
TELL_EVERY_BYTES = 512 * 1024

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Subscriptions:
    """Who listens to what: ``users`` sockets, ``each`` topics a socket out of ``pool``."""

    target: Target
    origin: str
    users: int
    each: int
    pool: int
    message_bytes: int
    timeout_s: float

    def topics_of(self, user: int) -> list[str]:
        chosen = Random(f"1/{user}").sample(range(self.pool), self.each)  # noqa: S311 - a load
        return [f"t{number:06d}" for number in chosen]


class Client:
    """All sockets of a test."""

    def __init__(self, loop: Any, asked: Subscriptions) -> None:
        self.loop = loop
        self.asked = asked
        self.tally = Tally()
        self.layout = Layout(asked.message_bytes, 7)
        self.sockets: list[Socket] = []
        self.closed_early = 0

    def open(self) -> None:
        """Connect and subscribe all users; raise ``ConnectionError`` where one cannot."""
        self.sockets = [Socket(self, user) for user in range(self.asked.users)]
        for socket in self.sockets:
            socket.subscribed.get(timeout=self.asked.timeout_s)
        logger.info("%d sockets %s", len(self.sockets), SUBSCRIBED)

    def counts(self) -> dict[str, int]:
        """Return what came, and where it began and ended (see ``Subscriber``)."""
        subscribers = [socket.subscriber for socket in self.sockets]
        return {
            **self.tally.counts(),
            "late": sum(one.late() for one in subscribers),
            "reached": sum(one.reached() for one in subscribers),
            "closed_early": self.closed_early,
        }

    def close(self) -> None:
        for socket in self.sockets:
            socket.stream.close()


class Socket:
    """One user. ``subscribed`` is set once the server says that the subscription is live."""

    def __init__(self, client: Client, user: int) -> None:
        self.client = client
        self.topics = client.asked.topics_of(user)
        names = (name.encode() for name in self.topics)
        self.subscriber = Subscriber(names, client.layout, client.tally, since_start=False)
        self.subscribed: AsyncResult = AsyncResult()
        self.total = self.told = 0
        self.parts: list[bytes] = []
        url = client.asked.target.url.replace("http", "ws", 1)
        self.protocol = ClientProtocol(parse_uri(url), origin=client.asked.origin, max_size=None)
        self.stream = Stream(client.loop, client.asked.target, self._received, self._ended)
        self.protocol.send_request(self.protocol.connect())
        self._flush()

    def _flush(self) -> None:
        for data in self.protocol.data_to_send():
            if data:
                self.stream.write(data)

    def _received(self, data: bytes) -> None:
        opening = self.protocol.state is State.CONNECTING
        self.protocol.receive_data(data)
        if self.protocol.handshake_exc is not None:
            self._ended(str(self.protocol.handshake_exc))
            return
        if opening and self.protocol.state is State.OPEN:
            self.protocol.send_text(json.dumps({"subscribe": self.topics, "id": 1}).encode())
        for event in self.protocol.events_received():
            if isinstance(event, Frame):
                self._frame(event)
        self._flush()

    def _frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.TEXT:
            answer = json.loads(bytes(frame.data))
            if answer == {"subscribed": len(self.topics), "id": 1}:
                self.subscribed.set(answer)
            else:
                self._ended(f"the server answers {answer}")
        elif frame.opcode in (Opcode.BINARY, Opcode.CONT):
            self.parts.append(bytes(frame.data))
            if frame.fin:
                whole, self.parts = b"".join(self.parts), []
                self._take(whole)
        elif frame.opcode is Opcode.CLOSE:
            self._ended(CLOSED)

    def _take(self, whole: bytes) -> None:
        self.subscriber.take(whole, time.time_ns())
        self.total += len(whole)
        if self.total - self.told >= TELL_EVERY_BYTES:
            self.told = self.total
            self.protocol.send_text(b'{"received": %d}' % self.total)

    def _ended(self, kind: str) -> None:
        self.stream.close()
        self.client.closed_early += 1
        if not self.subscribed.ready():
            self.subscribed.set_exception(ConnectionError(kind))
