"""The clauses about WebSocket: echo, relay, rooms, and who is let in."""

import json
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from bench.contract.replies import server_pids, worker_breaches
from bench.variants import Variant

TIMEOUT_S = 6.0  # above the 5 s after which the relay gives up on a worker
CLOSE_S = 1.0  # nothing is learned from a server that is slow to say goodbye
_MEGABYTE = 1024 * 1024
_MEMBERS_MAX = 64  # of a room, until two of them are in different processes

# Daphne 4.2.3 and granian 2.8 leave the headers of websocket.accept out of their 101 response.
_WITHOUT_ACCEPT_HEADERS = frozenset(("daphne", "granian"))

# No empty message: Daphne 4.2.3 does not send one, whatever the application says.
MESSAGES: tuple[str | bytes, ...] = (
    "text",
    "Grüße, 世界 \N{ROCKET}",
    b"\x00\x01bytes\xff",
    "m" * _MEGABYTE,
    bytes(range(256)) * (_MEGABYTE // 256),
)


@contextmanager
def socket(base_url: str, path: str, *, origin: str | None = "") -> Iterator[ClientConnection]:
    """Open a WebSocket; ``origin`` is the server's own unless given, and None sends none."""
    with connect(
        "ws" + base_url.removeprefix("http") + path,
        origin=base_url if origin == "" else origin,  # type: ignore[arg-type]
        open_timeout=TIMEOUT_S,
        close_timeout=CLOSE_S,
        max_size=None,
        compression=None,
        proxy=None,
    ) as opened:
        yield opened


def refusal(base_url: str, path: str, *, origin: str | None = "") -> str | None:
    """Return the breach that the handshake was not refused with a 4xx or 5xx; None if it was."""
    try:
        with socket(base_url, path, origin=origin):
            return f"{path} opened"
    except InvalidStatus as error:
        status = error.response.status_code
        return None if 400 <= status < 600 else f"{path} answered {status}"
    except (InvalidHandshake, EOFError, ConnectionError) as error:
        return f"{path} ended the handshake without an answer ({type(error).__name__})"


def refused(base_url: str, variant: Variant) -> Iterator[str]:
    """WSGI refuses sockets; a foreign or missing origin and an unknown path are refused by all."""
    breaches = {
        "with a foreign origin": refusal(base_url, "/ws/echo/", origin="http://elsewhere.example"),
        "without an origin": refusal(base_url, "/ws/echo/", origin=None),
        "on an unknown path": refusal(base_url, "/ws/no/such/"),
    }
    if variant.interface == "wsgi":
        breaches["over WSGI"] = refusal(base_url, "/ws/echo/")
    if not variant.has_worker:
        breaches["without a worker"] = refusal(base_url, "/ws/relay/")
    yield from (f"{what}: {breach}" for what, breach in breaches.items() if breach)


def echo(base_url: str, variant: Variant) -> Iterator[str]:
    """/ws/echo/ gives text and bytes back, unchanged and in order."""
    if variant.interface == "asgi":
        with socket(base_url, "/ws/echo/") as client:
            named = _header(client, "X-Server-Pid").isdecimal()
            if not named and variant.server not in _WITHOUT_ACCEPT_HEADERS:
                yield "/ws/echo/ does not name its process in X-Server-Pid"
            yield from _echoes("/ws/echo/", client)


def echo_one_by_one(base_url: str, variant: Variant) -> Iterator[str]:
    """What is left of the same in 2016, where a layer holds 10 messages and no header is ours."""
    if variant.interface == "asgi":
        with socket(base_url, "/ws/echo/") as client:
            yield from _given_back("/ws/echo/", client)


def relayed_echo(base_url: str, variant: Variant) -> Iterator[str]:
    """/ws/relay/ does the same by way of a worker, and names it."""
    if variant.has_worker:
        with socket(base_url, "/ws/relay/?pids") as client:
            pids = _told_pids(client)
            yield from worker_breaches("/ws/relay/", pids, server_pids(base_url, variant))
            if variant.server not in _WITHOUT_ACCEPT_HEADERS:
                headers = {name: _header(client, name) for name in pids}
                if headers != pids:
                    yield f"/ws/relay/ names {headers} in its headers and {pids} in its message"
            yield from _echoes("/ws/relay/", client)


def _told_pids(client: ClientConnection) -> dict[str, str]:
    """Return the processes that the first message names, as the headers would; blank for none."""
    names = {"x-server-pid": "server_pid", "x-worker-pid": "worker_pid"}
    try:
        told = json.loads(client.recv(timeout=TIMEOUT_S))
    except (TimeoutError, ValueError):
        told = {}
    return {header: str(told.get(name, "")) for header, name in names.items()}


def _header(client: ClientConnection, name: str) -> str:
    assert client.response, "it is open, so there was a response"
    return client.response.headers.get(name, "")


def _given_back(path: str, client: ClientConnection) -> Iterator[str]:
    for message in MESSAGES:
        client.send(message)
        try:
            reply = client.recv(timeout=TIMEOUT_S)
        except TimeoutError:
            yield f"{path} does not give back {_named(message)}"
            return
        if reply != message or type(reply) is not type(message):
            yield f"{path} gives back {_named(reply)} for {_named(message)}"


def _echoes(path: str, client: ClientConnection) -> Iterator[str]:
    yield from _given_back(path, client)
    numbers = [str(number) for number in range(100)]
    for number in numbers:
        client.send(number)
    if [client.recv(timeout=TIMEOUT_S) for _ in numbers] != numbers:
        yield f"{path} does not keep the order of messages"


def _named(message: str | bytes) -> str:
    return f"{type(message).__name__} of length {len(message)} ({message[:12]!r})"


def room(base_url: str, variant: Variant) -> Iterator[str]:
    """Every member of a room gets every message once, in whichever process it is; others none."""
    if variant.interface != "asgi":
        return
    name = secrets.token_hex(8)
    with ExitStack() as stack:
        members = _members(stack, base_url, f"/ws/room/{name}/", variant)
        stranger = stack.enter_context(socket(base_url, f"/ws/room/{name}.other/"))
        processes = serving_pids(members)
        if variant.proxy == "direct" and len(processes) < min(2, variant.processes):
            yield f"{len(members)} members of a room are all in process {processes}"
        yield from _heard(members, stranger)


def _members(
    stack: ExitStack, base_url: str, path: str, variant: Variant
) -> list[ClientConnection]:
    """Open three members or more: as many as it takes to find two processes, where there are.

    Behind a proxy nobody here can tell which process is at the other end: three for each of them.
    """
    members: list[ClientConnection] = []
    direct = variant.proxy == "direct"
    least = 3 if direct else 3 * variant.processes
    while len(members) < least or (
        direct
        and len(serving_pids(members)) < min(2, variant.processes)
        and len(members) < _MEMBERS_MAX
    ):
        members.append(stack.enter_context(socket(base_url, path)))
    return members


def serving_pids(clients: list[ClientConnection]) -> set[int]:
    """Return the processes at the other ends of ``clients``, as the kernel knows them."""
    ours = {client.local_address for client in clients}
    return {
        connection.pid
        for connection in psutil.net_connections(kind="tcp")
        if connection.raddr and tuple(connection.raddr) in ours and connection.pid
    }


def _heard(members: list[ClientConnection], stranger: ClientConnection) -> Iterator[str]:
    said: list[str | bytes] = ["from the first", b"bytes", "from the last"]
    for speaker, message in zip((members[0], members[0], members[-1]), said, strict=True):
        speaker.send(message)
    for number, member in enumerate(members):
        heard = _received(member, len(said))
        if sorted(map(repr, heard)) != sorted(map(repr, said)):
            yield f"member {number} of {len(members)} in a room heard {heard} of {said}"
    for speaker in (members[0], stranger):
        speaker.send("the end")
    for number, listener in enumerate((*members, stranger)):
        if _received(listener, 1) != ["the end"]:
            yield f"listener {number} of {len(members) + 1} heard what was not for it, or twice"


def _received(client: ClientConnection, count: int) -> list[str | bytes]:
    """Return the next ``count`` messages, or as many of them as come in time."""
    received: list[str | bytes] = []
    try:
        while len(received) < count:
            received.append(client.recv(timeout=TIMEOUT_S))
    except TimeoutError:
        pass
    return received


CLAUSES = (refused, echo, relayed_echo, room)
__all__ = ["CLAUSES", "WebSocketException"]
