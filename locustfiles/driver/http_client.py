"""A lean HTTP/1.1 client: one GET again and again, in callbacks of gevent's event loop.

A request costs no greenlet and no timer, only the system calls and the parser: about a quarter of
what Locust's FastHttpUser spends, so that the generator reaches its limit well after the server.
"""

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httptools
from gevent.event import AsyncResult
from gevent.monkey import get_original

from .record import TIMEOUT
from .target import Target
from .ticker import clock

Done = Callable[[str | None, int], None]  # takes how the request failed, and the body's length

# Locust has put gevent's cooperative sockets in the place of Python's. These never wait anyway.
_socket, SOCK_STREAM, SOCK_NONBLOCK, IPPROTO_TCP, TCP_NODELAY = get_original(
    "socket", ["socket", "SOCK_STREAM", "SOCK_NONBLOCK", "IPPROTO_TCP", "TCP_NODELAY"]
)
READABLE, WRITABLE = 1, 2  # libev's EV_READ and EV_WRITE
CHUNK_BYTES = 65_536
SWEEP_S = 0.02  # how late a timeout may be noticed

_KINDS = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "reset",
    errno.EPIPE: "reset",
    errno.EADDRNOTAVAIL: "no local port left",
    errno.EMFILE: "no file handle left",
}


def failure_kind(error: OSError) -> str:
    """Return the name under which ``error`` is counted: the same one whatever the text."""
    return _KINDS.get(error.errno or 0) or errno.errorcode.get(error.errno or 0, str(error))


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


class HttpClient:
    """Sends one kind of request, over as many connections as are needed at once."""

    def __init__(self, loop: Any, request: Request) -> None:
        self.loop = loop
        self.request = request
        self.encoded = request.encoded()
        self.idle: list[Connection] = []
        # In the order of sending, which with one timeout for all is the order of expiry.
        self.deadlines: dict[Connection, float] = {}
        self._sweep = loop.timer(SWEEP_S, SWEEP_S)
        self._sweep.start(self._expire)

    def send(self, done: Done) -> None:
        """Send the request now. ``done`` is called once, from the event loop and never from here.

        Under keep-alive the connection used last is taken again, and a new one is opened only
        where all others are waiting for a reply.
        """
        connection = self.idle.pop() if self.idle else Connection(self)
        self.deadlines[connection] = clock() + self.request.timeout_s
        connection.send(done)

    def close(self) -> None:
        """Close every connection; a request in flight is reported as a timeout."""
        for connection in list(self.deadlines):
            connection.finish(TIMEOUT)
        for connection in self.idle:
            connection.close()
        self.idle.clear()
        self._sweep.stop()
        self._sweep.close()

    def _expire(self) -> None:
        now = clock()
        expired = []
        for connection, deadline in self.deadlines.items():
            if deadline > now:
                break
            expired.append(connection)
        for connection in expired:
            connection.finish(TIMEOUT)


class Connection:
    """One TCP connection, with at most one request in flight. Also the parser's callbacks."""

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self.done: Done | None = None
        self.socket: Any = None
        self.reader: Any = None
        self.writer: Any = None

    def send(self, done: Done) -> None:
        self.done = done
        self.unsent = self.client.encoded
        self.body = b""
        self.complete = self.may_be_kept = self.headers_complete = self.has_length = False
        try:
            if self.socket is None:
                self._connect()
            self._write()
        except OSError as error:
            # Not from within `send`: a client that retries at once would recurse.
            self.client.loop.run_callback(self.finish, failure_kind(error))

    def finish(self, failure: str | None) -> None:
        """Report the request in flight, and keep or close the connection."""
        done, self.done = self.done, None
        if done is None:
            return
        del self.client.deadlines[self]
        if failure is None and self.client.request.keepalive and self.may_be_kept:
            self.client.idle.append(self)
        else:
            self.close()
        done(failure, len(self.body))

    def close(self) -> None:
        for watcher in (self.reader, self.writer):
            if watcher is not None:
                watcher.stop()
                watcher.close()
        self.reader = self.writer = None
        if self.socket is not None:
            self.socket.close()

    def _connect(self) -> None:
        target = self.client.request.target
        self.socket = _socket(target.family, SOCK_STREAM | SOCK_NONBLOCK)
        self.socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        code = self.socket.connect_ex(target.address)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, "connect")
        self.parser = httptools.HttpResponseParser(self)
        self.reader = self.client.loop.io(self.socket.fileno(), READABLE)
        self.reader.start(self._readable)

    def _write(self) -> None:
        """Send what is unsent: over loopback a connection is made by the time this is called."""
        with suppress(BlockingIOError):
            self.unsent = self.unsent[self.socket.send(self.unsent) :]
        if self.unsent and self.writer is None:
            self.writer = self.client.loop.io(self.socket.fileno(), WRITABLE)
            self.writer.start(self._writable)

    def _writable(self) -> None:
        self.writer.stop()
        self.writer.close()
        self.writer = None
        try:
            self._write()
        except OSError as error:
            self.finish(failure_kind(error))

    def _readable(self) -> None:
        try:
            data = self.socket.recv(CHUNK_BYTES)
            if data and self.done:
                self.parser.feed_data(data)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(failure_kind(error))
        except httptools.HttpParserError:
            self._lose("malformed reply")
        else:
            if self.complete:
                self.finish(self._verdict())
            elif not data or not self.done:
                self._lose(self._verdict() if self._ends_with_close() else "closed early")

    def _lose(self, failure: str | None) -> None:
        """The connection is gone: with a request in flight, or idle."""
        if self.done:
            # llhttp cannot be told that the stream has ended, and would keep the connection.
            self.client.loop.run_callback(self.close)
            self.finish(failure)
        elif self in self.client.idle:
            self.client.idle.remove(self)
            self.close()

    def _ends_with_close(self) -> bool:
        return self.headers_complete and not self.has_length

    def _verdict(self) -> str | None:
        status = self.parser.get_status_code()
        if not 200 <= status < 300:
            return f"status {status}"
        expected = self.client.request.expect_body
        return "wrong body" if expected is not None and self.body != expected else None

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
