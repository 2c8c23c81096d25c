"""A redis-server of the test run's own: on a unix socket, in memory only."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INSTALL = "sudo apt-get install --yes redis-server"


def binary() -> str | None:
    return shutil.which("redis-server")


@contextmanager
def running(folder: Path, patience_s: float = 10.0) -> Iterator[Path]:
    """Start a redis-server in ``folder``; yield its socket's path; stop it in the end."""
    socket = folder / "redis.sock"
    command = [
        *(str(binary()), "--port", "0", "--unixsocket", str(socket)),
        *("--save", "", "--appendonly", "no", "--dir", str(folder)),
        *("--logfile", str(folder / "redis.log")),
    ]
    process = subprocess.Popen(command)
    try:
        wait_for(socket, process, patience_s)
        yield socket
    finally:
        process.terminate()
        process.wait(timeout=patience_s)


def wait_for(socket: Path, process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Return when the server answers PING; raise where it ends or does not come up."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"redis-server ended with {process.returncode}; log beside {socket}")
        if socket.exists() and answers(socket):
            return
        time.sleep(0.02)
    raise TimeoutError(f"redis-server did not answer on {socket} within {patience_s} s")


def answers(socket: Path) -> bool:
    ping = ["redis-cli", "-s", str(socket), "ping"]
    return subprocess.run(ping, capture_output=True, check=False).stdout == b"PONG\n"
