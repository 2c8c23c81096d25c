"""A lean HTTP/1.1 client: one GET again and again, in callbacks of gevent's event loop.

A request costs no greenlet and no timer, only the system calls and the parser, so that the
generator reaches its limit well after the server.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httptools
from gevent.event import AsyncResult

from .deadlines import Deadlines
from .record import TIMEOUT
from .stream import CLOSED, Stream
from .target import Target

Done = Callable[[str | None, int], None]  # takes how the request failed, and the body's length


@dataclass(frozen=True)
class Request:
    """What is asked, and what the answer has to be. ``expect_body`` of None accepts any body."""

    target: Target
    keepalive: bool
    timeout_s: float
    expect_body: bytes | None = None

    def encoded(self) -> bytes:
        """Return the request's bytes on the wire."""
        return (
            f"GET {self.target.path} HTTP/1.1\r\n"
            f"Host: {self.target.authority}\r\n"
            "User-Agent: channels-test-project\r\n"
            "Accept: */*\r\n"
            f"Connection: {'keep-alive' if self.keepalive else 'close'}\r\n\r\n"
        ).encode()

    def verdict(self, status: int, body: bytes) -> str | None:
        """Return how a complete reply fails to be the one that was asked for, ``None`` if not."""
        if not 200 <= status < 300:
            return f"status {status}"
        return "wrong body" if self.expect_body is not None and body != self.expect_body else None


class HttpClient:
    """Sends one kind of request, over as many connections as are needed at once."""

    def __init__(self, loop: Any, request: Request) -> None:
        self.loop = loop
        self.request = request
        self.encoded = request.encoded()
        self.idle: list[Connection] = []
        self.deadlines = Deadlines(loop, request.timeout_s, lambda each: each.finish(TIMEOUT))

    def send(self, done: Done) -> None:
        """Send the request now. ``done`` is called once, from the event loop and never from here.

        Under keep-alive the connection used last is taken again, and a new one is opened only
        where all others are waiting for a reply.
        """
        connection = self.idle.pop() if self.idle else Connection(self)
        self.deadlines.add(connection)
        connection.send(done)

    def close(self) -> None:
        """Close every connection; a request in flight is reported as a timeout."""
        self.deadlines.close()
        for connection in self.idle:
            connection.stream.close()
        self.idle.clear()


class Connection:
    """One connection, with at most one request in flight. Also the parser's callbacks."""

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self.done: Done | None = None
        self.parser = httptools.HttpResponseParser(self)
        self.stream = Stream(client.loop, client.request.target, self._received, self._ended)

    def send(self, done: Done) -> None:
        self.done = done
        self.body = b""
        self.complete = self.may_be_kept = self.headers_complete = self.has_length = False
        self.stream.write(self.client.encoded)

    def finish(self, failure: str | None) -> None:
        """Report the request in flight, and keep or close the connection."""
        done, self.done = self.done, None
        assert done is not None
        self.client.deadlines.remove(self)
        if failure is None and self.may_be_kept and self.client.request.keepalive:
            self.client.idle.append(self)
        else:
            self.stream.close()
        done(failure, len(self.body))

    def _received(self, data: bytes) -> None:
        if self.done is None:
            self._ended(CLOSED)  # an answer nobody asked for: this connection is of no use
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.finish("malformed reply")
        else:
            if self.complete:
                self.finish(self._verdict())

    def _ended(self, kind: str) -> None:
        if self.done is None:
            self.client.idle.remove(self)
            self.stream.close()
        elif kind == CLOSED and self.headers_complete and not self.has_length:
            self.finish(self._verdict())  # the body ends where the connection does
        else:
            self.finish(kind)

    def _verdict(self) -> str | None:
        return self.client.request.verdict(self.parser.get_status_code(), self.body)

    # What httptools calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self.has_length = True

    def on_headers_complete(self) -> None:
        self.headers_complete = True

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete = True
        # Only here: llhttp forgets it with the message.
        self.may_be_kept = self.parser.should_keep_alive()


def probe(loop: Any, request: Request) -> str | None:
    """Send ``request`` once, and return how it failed; ``None`` if it did not."""
    result: AsyncResult = AsyncResult()
    client = HttpClient(loop, request)
    try:
        client.send(lambda failure, _: result.set(failure))
        failure = result.get()
        assert failure is None or isinstance(failure, str)
        return failure
    finally:
        client.close()
