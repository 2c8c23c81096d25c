"""What the kernel alone takes for the bytes of a fan-out: the floor under every server.

    python -m bench.fanout.floor SOCKETS FRAME_BYTES SECONDS

One process writes frames to many TCP connections on loopback, in turn, straight from memory it
never touches; another reads and forgets them. The writer's processor time per byte is what no
server can go below, whatever it is written in: the kernel's copying and TCP, and nothing else.
Prints JSON.
"""

import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

READ_BYTES = 1024 * 1024
CHECK_EVERY = 64


@dataclass(frozen=True)
class Floor:
    """What the writer did. ``cpu_s`` is its processor time, ``system_s`` the kernel's part."""

    sockets: int
    frame_bytes: int
    frames: int
    seconds: float
    cpu_s: float
    system_s: float

    def messages_per_cpu_s(self, message_bytes: int) -> float:
        """Return how many messages of that size went out per second of processor time."""
        return self.frames * self.frame_bytes / message_bytes / self.cpu_s


def measure(
    sockets: int, frame_bytes: int, seconds: float, cpus: Sequence[int] | None = None
) -> Floor:
    """Write for ``seconds``; the writer runs on the first of ``cpus``, the reader on the last."""
    with socket.create_server(("127.0.0.1", 0), backlog=sockets) as listener:
        reader = os.fork()
        if reader == 0:
            _read(listener.getsockname(), sockets, cpus)
        accepted: list[socket.socket] = []
        usable = os.sched_getaffinity(0)
        try:
            if cpus:
                os.sched_setaffinity(0, {cpus[0]})
            accepted += [listener.accept()[0] for _ in range(sockets)]
            return _write(accepted, frame_bytes, seconds)
        finally:
            os.sched_setaffinity(0, usable)
            for one in accepted:
                one.close()
            os.waitpid(reader, 0)


def _write(accepted: list[socket.socket], frame_bytes: int, seconds: float) -> Floor:
    frame = bytes(frame_bytes)
    began, before = time.monotonic(), os.times()
    frames, end = 0, began + seconds
    while time.monotonic() < end:
        for start in range(0, len(accepted), CHECK_EVERY):
            for one in accepted[start : start + CHECK_EVERY]:
                one.sendall(frame)
            frames += len(accepted[start : start + CHECK_EVERY])
            if time.monotonic() > end:
                break
    after = os.times()
    system_s = after.system - before.system
    return Floor(
        sockets=len(accepted),
        frame_bytes=frame_bytes,
        frames=frames,
        seconds=time.monotonic() - began,
        cpu_s=after.user - before.user + system_s,
        system_s=system_s,
    )


def _read(address: tuple[str, int], sockets: int, cpus: Sequence[int] | None) -> None:
    """Read until every connection is closed, and end this process."""
    if cpus:
        os.sched_setaffinity(0, {cpus[-1]})
    selector = selectors.DefaultSelector()
    for _ in range(sockets):
        selector.register(socket.create_connection(address), selectors.EVENT_READ)
    buffer = bytearray(READ_BYTES)
    while selector.get_map():
        for key, _ in selector.select():
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if not connection.recv_into(buffer):
                selector.unregister(connection)
                connection.close()
    os._exit(0)


def main() -> None:
    sockets, frame_bytes, seconds = sys.argv[1:4]
    cpus = sorted(os.sched_getaffinity(0))
    found = measure(int(sockets), int(frame_bytes), float(seconds), cpus)
    sys.stdout.write(json.dumps(asdict(found)) + "\n")


if __name__ == "__main__":
    main()
