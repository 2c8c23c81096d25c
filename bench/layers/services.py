"""The redis-server of a run: its own, in a temporary directory, writing nothing to disk."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import BadInput
from bench.layers.peers import Places

PATIENCE_S = 10.0


@contextmanager
def running(*, redis: bool = True) -> Iterator[tuple[Places, int | None]]:
    """Yield where the layers of a run live, and the redis-server's pid where one is asked for.

    All of it ends with the run. Raises BadInput where there is no redis-server to start.
    """
    with tempfile.TemporaryDirectory(prefix="bench-layers-") as folder:
        places = Places(Path(folder) / "ipc", Path(folder) / "redis.sock", free_port())
        if redis:
            with redis_server(places) as pid:
                yield places, pid
        else:
            yield places, None


@contextmanager
def redis_server(places: Places) -> Iterator[int]:
    """Yield the pid of a redis-server that answers."""
    binary = shutil.which("redis-server")
    if binary is None:
        raise BadInput(
            "there is no redis-server: install it (sudo apt-get install redis-server), "
            "or name the layers that need none with --layer"
        )
    process = subprocess.Popen(command(binary, places))
    try:
        wait_for(places, process)
        yield process.pid
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


def command(binary: str, places: Places) -> list[str]:
    folder = places.redis_socket.parent
    return [
        *(binary, "--bind", "127.0.0.1", "--port", str(places.redis_port)),
        *("--unixsocket", str(places.redis_socket), "--save", "", "--appendonly", "no"),
        *("--dir", str(folder), "--logfile", str(folder / "redis.log")),
    ]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(places: Places, process: subprocess.Popen[bytes]) -> None:
    """Return when the server answers; raise where it ends or does not come up."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"redis-server ended with {process.returncode}")
        if answers(places.redis_port):
            return
        time.sleep(0.02)
    raise TimeoutError(f"redis-server did not answer within {PATIENCE_S} s")


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(7) == b"+PONG\r\n"
    except ConnectionRefusedError:
        return False
