"""A steady, light load of which nothing is lost sight of: requests, sockets and their messages."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from bench.faults.connection import OK, TIMEOUT_S, Client

CLIENTS = 8  # that send requests, one after the other; every second one keeps its connection
PAUSE_S = 0.04  # of a client between two requests: together under 200 a second
SOCKETS = 32
MESSAGE_PAUSE_S = 0.1  # of a socket between two messages


@dataclass(frozen=True)
class Request:
    """One request: when it was sent (``time.monotonic``), how long it took, what came of it.

    A handshake is one, too. ``repeated``: it was sent once more, on another connection.
    """

    sent_s: float
    took_s: float
    result: str  # OK, or what a person would call the failure: "status 502", "cut off", "hung"
    repeated: bool = False


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
    """All that the clients saw. ``handshakes`` are those of sockets opened while it went on."""

    requests: list[Request] = field(default_factory=list)
    sockets: list[Socket] = field(default_factory=list)
    handshakes: list[Request] = field(default_factory=list)


def results(requests: Iterable[Request]) -> dict[str, int]:
    """Return how often what came of a request."""
    return dict(Counter(request.result for request in requests).most_common())


def failed(requests: Iterable[Request]) -> list[Request]:
    return [request for request in requests if request.result != OK]


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
        if sockets:
            group.create_task(_greet(base_url, seen, over))
        for number in range(CLIENTS):
            client = Client(base_url, keeps=number % 2 == 0)
            group.create_task(_ask(client, seen, over, number * PAUSE_S / CLIENTS))
        await asyncio.sleep(before_s)
        began_s = time.monotonic()
        try:
            await asyncio.to_thread(fault)
            await asyncio.sleep(after_s)
        finally:
            over.set()
    return seen, began_s


async def _ask(client: Client, seen: Seen, over: asyncio.Event, wait_s: float) -> None:
    try:
        await asyncio.sleep(wait_s)
        while not over.is_set():
            sent_s = time.monotonic()
            result, repeated = await client.ask()
            seen.requests.append(Request(sent_s, time.monotonic() - sent_s, result, repeated))
            await asyncio.sleep(PAUSE_S)
    finally:
        await client.close()


async def _opened(base_url: str) -> ClientConnection:
    return await connect(
        "ws" + base_url.removeprefix("http") + "/ws/echo/",
        origin=base_url,  # type: ignore[arg-type]
        compression=None,
        proxy=None,
        close_timeout=2,
        open_timeout=TIMEOUT_S,
    )


async def _greet(base_url: str, seen: Seen, over: asyncio.Event) -> None:
    """Open a socket, have a message back, close it, and again, until the load is over."""
    while not over.is_set():
        sent_s = time.monotonic()
        result = await _greeted(base_url)
        seen.handshakes.append(Request(sent_s, time.monotonic() - sent_s, result))
        await asyncio.sleep(PAUSE_S)


async def _greeted(base_url: str) -> str:
    """Return what came of a new socket; "open, then ..." where it ended before its message came.

    No proxy can mend that: the process that had answered is gone.
    """
    try:
        connection = await _opened(base_url)
    except InvalidStatus as refusal:
        return f"status {refusal.response.status_code}"
    except TimeoutError:
        return "hung"
    except ConnectionRefusedError:
        return "refused"
    except (OSError, InvalidHandshake):
        return "cut off"
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await connection.send("hello")
            reply = await connection.recv()
        return OK if reply == "hello" else "wrong message"
    except ConnectionClosed as closed:
        return f"open, then {_end(closed)}"
    except TimeoutError:
        return "open, then hung"
    finally:
        await connection.close()


async def _talk(connection: ClientConnection, seen: Seen, over: asyncio.Event) -> None:
    """Send a message, take it back, and again, until the load is over or the socket ends."""
    assert connection.response, "it is open, so there was a response"
    pid = connection.response.headers.get("X-Server-Pid")
    socket = Socket(int(pid) if pid else None)
    seen.sockets.append(socket)
    try:
        while not over.is_set():
            message = str(socket.sent)
            await connection.send(message)
            socket.sent += 1
            async with asyncio.timeout(TIMEOUT_S):
                reply = await connection.recv()
            socket.returned += 1
            socket.wrong += reply != message
            await asyncio.sleep(MESSAGE_PAUSE_S)
    except ConnectionClosed as closed:
        socket.ended = _end(closed)
    except TimeoutError:
        socket.ended = "hung"
    finally:
        await connection.close()


def _end(closed: ConnectionClosed) -> str:
    return f"closed {closed.rcvd.code}" if closed.rcvd else "cut off"
