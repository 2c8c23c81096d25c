"""A subscriber by long polling: one kept connection, and the next poll follows each answer."""

import asyncio
import json
import time
from typing import Any
from urllib.parse import urlsplit

from bench.fanout.spec import Spec
from locustfiles.driver.deliveries import Layout, Subscriber, Tally

LONGEST_POLL_S = 20
TOPICS_NEEDED = 409  # the process that answers does not know the cursor's session


class Poller(asyncio.Protocol):
    """One client. Polls from its first answer on, until it is closed."""

    def __init__(self, authority: str) -> None:
        self.subscriber: Subscriber | None = None
        self.topics: list[str] = []
        self._cursor = ""
        self.gaps = 0
        self.closed = asyncio.get_running_loop().create_future()
        self.live = asyncio.get_running_loop().create_future()
        self._authority = authority
        self._buffer = bytearray()
        self._head: tuple[int, dict[bytes, bytes], int] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
        if not self.live.done():
            self.live.set_exception(ConnectionError("the server closed the connection"))

    def poll(self, **request: Any) -> None:
        body = json.dumps({**request, "timeout": LONGEST_POLL_S}).encode()
        self.transport.write(
            b"POST /poll/ HTTP/1.1\r\nHost: %s\r\nAccept: application/octet-stream\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (self._authority.encode(), len(body), body)
        )

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self._head = parse_head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
        status, headers, length = self._head
        if len(self._buffer) >= length:
            body, self._buffer, self._head = self._buffer, bytearray(), None
            self._answered(status, headers, body)

    def _answered(self, status: int, headers: dict[bytes, bytes], body: bytearray) -> None:
        if status == TOPICS_NEEDED:
            self.poll(topics=self.topics, cursor=self._cursor)
            return
        if status != 200:
            self.transport.close()
            return
        self._cursor = headers[b"x-cursor"].decode()
        self.gaps += headers[b"x-gaps"] != b"[]"
        if not self.live.done():
            self.live.set_result(None)
        elif body and self.subscriber is not None:
            self.subscriber.take(body, time.time_ns())
        self.poll(cursor=self._cursor)

    def close(self) -> None:
        self.transport.close()


def parse_head(head: bytes) -> tuple[int, dict[bytes, bytes], int]:
    """Return status, headers with names in lower case, and the length of the body."""
    first, *lines = head.split(b"\r\n")
    pairs = (line.partition(b":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return int(first.split(b" ")[1]), headers, int(headers[b"content-length"])


class Polls:
    """The long-polling side of the generator."""

    def __init__(self, spec: Spec, layout: Layout, tally: Tally) -> None:
        self._layout = layout
        self._tally = tally
        self._parts = urlsplit(spec.url)

    async def open(self) -> Poller:
        assert self._parts.hostname
        _, poller = await asyncio.get_running_loop().create_connection(
            lambda: Poller(self._parts.netloc), self._parts.hostname, self._parts.port or 80
        )
        return poller

    async def subscribe(
        self, poller: Poller, topics: list[str], *, since_start: bool
    ) -> Subscriber:
        """Begin to poll; when this returns, nothing that is published is missed."""
        names = (name.encode() for name in topics)
        poller.subscriber = Subscriber(names, self._layout, self._tally, since_start=since_start)
        poller.topics = topics
        poller.poll(topics=topics)
        await poller.live
        return poller.subscriber

    async def leave(self, poller: Poller, topics: list[str]) -> None:
        """Go, with a poll open: what its answer would have held is left behind."""
        poller.close()
