"""A server that answers ``OK`` and misbehaves as it is told, for the load driver's tests.

    python server.py '{"service_s": 0.002, "stall_at": 3000, "stall_s": 0.5}'

Prints its port; when its standard input ends it prints what it saw as JSON and exits. It serves
one request at a time, in the order of their arrival, each for exactly ``service_s``: a queue of
known capacity. ``every`` says which requests get the ``fault``: 1 is all of them.
"""

import asyncio
import json
import socket
import struct
import sys
import threading
import time
from dataclasses import asdict, dataclass

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
GOOD = HEAD + b"Content-Length: 2\r\n\r\nOK"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST
FAULTS = {
    "wrong_body": HEAD + b"Content-Length: 2\r\n\r\nKO",
    "status": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nOK",
    "not_found": b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nOK",
    "truncated": HEAD + b"Content-Length: 20\r\n\r\nOK",
    "malformed": b"220 mail.example ESMTP\r\n\r\n",
    "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nO\r\n1\r\nK\r\n0\r\n\r\n",
    "unsized": HEAD + b"Connection: close\r\n\r\nOK",
    "reset": b"",
    "silent": b"",
}


@dataclass(frozen=True)
class Behaviour:
    service_s: float = 0.0
    stall_at: int = 0  # the number of the request before which the whole server stands still
    stall_s: float = 0.0
    fault: str = ""
    every: int = 1
    first: int = 2  # the first request with a fault: the driver's own probe is number 1
    refuse_after: int = 0  # requests after which nobody listens any more


@dataclass
class Seen:
    connections: int = 0
    requests: int = 0
    waiting: int = 0
    waiting_max: int = 0


def must_close(request: bytes) -> bool:
    """Return whether the client means to use the connection once. HTTP/1.0 always does, here."""
    return b"Connection: close" in request or b" HTTP/1.0" in request


class Connection(asyncio.Protocol):
    free_at = 0.0  # of the one queue: when the last request in it will have been served

    def __init__(self, behaviour: Behaviour, seen: Seen, stop_listening) -> None:
        self.behaviour = behaviour
        self.seen = seen
        self.stop_listening = stop_listening

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.seen.connections += 1

    def data_received(self, data: bytes) -> None:
        seen, behaviour = self.seen, self.behaviour
        if data.startswith(b"GET /seen "):
            self.tell()
            return
        seen.requests += 1
        seen.waiting += 1
        seen.waiting_max = max(seen.waiting, seen.waiting_max)
        if seen.requests == behaviour.stall_at:
            time.sleep(behaviour.stall_s)
        if seen.requests == behaviour.refuse_after:
            self.stop_listening()
        number = seen.requests - behaviour.first
        faulty = behaviour.fault and number >= 0 and number % behaviour.every == 0
        Connection.free_at = max(Connection.free_at, time.monotonic()) + behaviour.service_s
        asyncio.get_running_loop().call_at(
            Connection.free_at, self.answer, bool(faulty), must_close(data)
        )

    def tell(self) -> None:
        """Say what has been seen so far, which is not seen itself."""
        self.seen.connections -= 1
        body = json.dumps(asdict(self.seen)).encode()
        self.transport.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()

    def answer(self, faulty: bool, close: bool) -> None:
        fault = self.behaviour.fault if faulty else ""
        if fault == "silent":
            return  # and the request stays among those that wait
        self.seen.waiting -= 1
        if self.transport.is_closing():
            return
        if fault == "reset":
            raw = self.transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.transport.abort()
            return
        self.transport.write(FAULTS.get(fault, GOOD))
        if close or fault in ("truncated", "unsized", "malformed"):
            self.transport.close()


async def serve(behaviour: Behaviour) -> None:
    loop, seen, over = asyncio.get_running_loop(), Seen(), asyncio.Event()
    server = await loop.create_server(
        lambda: Connection(behaviour, seen, lambda: server.close()), "127.0.0.1", 0, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=wait, daemon=True).start()
    await over.wait()
    print(json.dumps(asdict(seen)), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(serve(Behaviour(**json.loads(sys.argv[1]))))
