"""A TCP connection that calls back from gevent's event loop, and never waits."""

import errno
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gevent.monkey import get_original

from .target import Target

# Locust has put gevent's cooperative sockets in the place of Python's. These never wait anyway.
_socket, SOCK_STREAM, SOCK_NONBLOCK, IPPROTO_TCP, TCP_NODELAY = get_original(
    "socket", ["socket", "SOCK_STREAM", "SOCK_NONBLOCK", "IPPROTO_TCP", "TCP_NODELAY"]
)
READABLE, WRITABLE = 1, 2  # libev's EV_READ and EV_WRITE
CHUNK_BYTES = 65_536

_KINDS = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "reset",
    errno.EPIPE: "reset",
    errno.EADDRNOTAVAIL: "no local port left",
    errno.EMFILE: "no file handle left",
}
CLOSED = "closed early"


def failure_kind(error: OSError) -> str:
    """Return the name under which ``error`` is counted."""
    number = error.errno or 0
    return _KINDS.get(number) or errno.errorcode.get(number, str(error))


class Stream:
    """Connects to ``target`` at once. Calls ``received`` with bytes, and ``ended`` at most once.

    ``ended`` takes the kind of failure, ``CLOSED`` where the other side closed in good order. Both
    are called from the event loop and never from within ``write``, so that a caller who tries
    again at once does not recurse. After ``close`` neither is called.
    """

    def __init__(
        self,
        loop: Any,
        target: Target,
        received: Callable[[bytes], None],
        ended: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._received = received
        self._ended = ended
        self._unsent = b""
        self._socket: Any = None
        self._reader: Any = None
        self._writer: Any = None
        try:
            self._connect(target)
        except OSError as error:
            self._fail_soon(error)

    def write(self, data: bytes) -> None:
        """Send ``data``, now if the connection takes it and in order in any case."""
        self._unsent += data
        if self._reader is not None and self._writer is None:
            try:
                self._flush()
            except OSError as error:
                self._fail_soon(error)

    def close(self) -> None:
        # The watchers first: the number of a closed descriptor is soon somebody else's.
        for watcher in (self._reader, self._writer):
            if watcher is not None:
                watcher.stop()
                watcher.close()
        self._reader = self._writer = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._received = self._ended = _ignore

    def _connect(self, target: Target) -> None:
        self._socket = _socket(target.family, SOCK_STREAM | SOCK_NONBLOCK)
        self._socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        code = self._socket.connect_ex(target.address)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, "connect")
        self._reader = self._loop.io(self._socket.fileno(), READABLE)
        self._reader.start(self._readable)

    def _flush(self) -> None:
        # Over loopback the connection is made by the time of the first write: no need to wait.
        with suppress(BlockingIOError):
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        if self._unsent and self._writer is None:
            self._writer = self._loop.io(self._socket.fileno(), WRITABLE)
            self._writer.start(self._writable)

    def _writable(self) -> None:
        try:
            self._flush()
        except OSError as error:
            self._ended(failure_kind(error))
        if not self._unsent and self._writer is not None:
            self._writer.stop()
            self._writer.close()
            self._writer = None

    def _readable(self) -> None:
        try:
            data = self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._ended(failure_kind(error))
            return
        if data:
            self._received(data)
        else:
            self._ended(CLOSED)

    def _fail_soon(self, error: OSError) -> None:
        self._loop.run_callback(lambda: self._ended(failure_kind(error)))


def _ignore(_: object) -> None:
    """Take the place of the callbacks of a closed stream."""
