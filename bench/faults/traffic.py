"""A steady, light load of which nothing is lost sight of: requests, sockets and their messages."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

CLIENTS = 8  # that send requests, one after the other, each on a connection of its own
PAUSE_S = 0.04  # of a client between two requests: together under 200 a second
SOCKETS = 32
MESSAGE_PAUSE_S = 0.1  # of a socket between two messages
TIMEOUT_S = 10.0  # above it a request counts as hung
OK = "ok"


@dataclass(frozen=True)
class Request:
    """One request: when it was sent (``time.monotonic``), how long it took, what came of it."""

    sent_s: float
    took_s: float
    result: str  # OK, or what a person would call the failure: "status 502", "cut off", "hung"


@dataclass
class Socket:
    """One socket: the process that it said it was in, and how it ended, if it did."""

    pid: int | None
    sent: int = 0
    returned: int = 0
    wrong: int = 0
    ended: str | None = None  # None: it was still open when the load was over


@dataclass
class Seen:
    """All that the clients saw."""

    requests: list[Request] = field(default_factory=list)
    sockets: list[Socket] = field(default_factory=list)

    @property
    def results(self) -> dict[str, int]:
        """How often what came of a request."""
        return dict(Counter(request.result for request in self.requests).most_common())

    @property
    def failed(self) -> list[Request]:
        return [request for request in self.requests if request.result != OK]


async def observed(
    base_url: str, fault: Callable[[], None], *, sockets: bool, before_s: float, after_s: float
) -> tuple[Seen, float]:
    """Return what clients of ``base_url`` saw, and when ``fault`` began (``time.monotonic``).

    The load runs for ``before_s``, then while ``fault`` does what it does in a thread of its own,
    and ``after_s`` from its end. What is under way at the end is waited for.
    """
    seen, over = Seen(), asyncio.Event()
    opened = [await _opened(base_url) for _ in range(SOCKETS)] if sockets else []
    async with asyncio.TaskGroup() as group:
        for socket in opened:
            group.create_task(_talk(socket, seen, over))
        for number in range(CLIENTS):
            group.create_task(_ask(base_url, seen, over, number * PAUSE_S / CLIENTS))
        await asyncio.sleep(before_s)
        began_s = time.monotonic()
        try:
            await asyncio.to_thread(fault)
            await asyncio.sleep(after_s)
        finally:
            over.set()
    return seen, began_s


async def _ask(base_url: str, seen: Seen, over: asyncio.Event, wait_s: float) -> None:
    await asyncio.sleep(wait_s)
    while not over.is_set():
        sent_s = time.monotonic()
        result = await _result(base_url)
        seen.requests.append(Request(sent_s, time.monotonic() - sent_s, result))
        await asyncio.sleep(PAUSE_S)


async def _result(base_url: str) -> str:
    """Send ``GET /`` once; return what came of it."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return _judged(await _reply(base_url))
    except TimeoutError:
        return "hung"
    except ConnectionRefusedError:
        return "refused"
    except OSError:
        return "cut off"


async def _reply(base_url: str) -> bytes:
    parts = urlsplit(base_url)
    assert parts.hostname, base_url
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
        head = f"GET / HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close"
        writer.write(f"{head}\r\n\r\n".encode())
        return await reader.read()
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _judged(reply: bytes) -> str:
    head, _, body = reply.partition(b"\r\n\r\n")
    words = head.split(maxsplit=2)
    if len(words) < 2 or not words[1].isdigit():
        return "cut off"
    if words[1] != b"200":
        return f"status {words[1].decode()}"
    return OK if body == b"OK" else "wrong body"


async def _opened(base_url: str) -> ClientConnection:
    return await connect(
        "ws" + base_url.removeprefix("http") + "/ws/echo/",
        origin=base_url,  # type: ignore[arg-type]
        compression=None,
        proxy=None,
        close_timeout=2,
        open_timeout=TIMEOUT_S,
    )


async def _talk(connection: ClientConnection, seen: Seen, over: asyncio.Event) -> None:
    """Send a message, take it back, and again, until the load is over or the socket ends."""
    assert connection.response, "it is open, so there was a response"
    pid = connection.response.headers.get("X-Server-Pid")
    socket = Socket(int(pid) if pid else None)
    seen.sockets.append(socket)
    try:
        while not over.is_set():
            message = str(socket.sent)
            socket.sent += 1
            await connection.send(message)
            async with asyncio.timeout(TIMEOUT_S):
                reply = await connection.recv()
            socket.returned += 1
            socket.wrong += reply != message
            await asyncio.sleep(MESSAGE_PAUSE_S)
    except ConnectionClosed as closed:
        socket.ended = f"closed {closed.rcvd.code}" if closed.rcvd else "cut off"
    except TimeoutError:
        socket.ended = "hung"
    finally:
        await connection.close()
