"""Fixtures that more than one folder of tests needs."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

PATIENCE_S = 30.0
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def free_port() -> int:
    """A TCP port of the loopback address that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes of this test, in the order of their start; all are stopped at its end."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in reversed(processes):
        stop(process)


@pytest.fixture
def start(started) -> Start:
    """Start a process of this test by ``start(*command, **options of Popen)``."""

    def start_process(*command: str, **options) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command, **options))
        return started[-1]

    return start_process


@pytest.fixture
def run_pytest(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run pytest on a module with a plugin of this folder: ``run_pytest(plugin, source, CI="")``.

    What is named after that is the environment's.
    """

    def run(plugin: str, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(source)
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", plugin, "-p", "no:django", "-q"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.fixture
def turns() -> Callable[[], AbstractAsyncContextManager[list[None]]]:
    """Return a block with a list that grows with each turn that the loop's other tasks have."""

    @asynccontextmanager
    async def turns() -> AsyncIterator[list[None]]:
        had: list[None] = []

        async def other() -> None:
            while True:
                had.append(None)
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        try:
            yield had
        finally:
            task.cancel()

    return turns


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a redis-server of the test run's own, on a unix socket."""
    if not shutil.which("redis-server"):
        missing = "redis-server is missing: apt-get install redis-server"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    folder = tmp_path_factory.mktemp("redis")
    socket_path = folder / "redis.sock"
    command = ("redis-server", "--port", "0", "--unixsocket", str(socket_path), "--save", "")
    process = subprocess.Popen([*command, "--logfile", str(folder / "log"), "--dir", str(folder)])
    try:
        wait_until(lambda: answers(socket_path), f"redis-server on {socket_path}")
        yield f"unix://{socket_path}"
    finally:
        stop(process)


@pytest.fixture(scope="session")
def chromium() -> dict[str, object]:
    """How Playwright launches the system's Chromium; where there is none the test is skipped."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("Chromium is missing: apt-get install chromium")
    # Its own sandbox cannot start as root.
    return {"executable_path": path, "args": ["--no-sandbox"] if os.geteuid() == 0 else []}


def answers(socket_path: Path) -> bool:
    """Whether the Redis behind the socket says PONG."""
    if not socket_path.exists():
        return False
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(socket_path))
        connection.sendall(b"PING\r\n")
        return connection.recv(16).startswith(b"+PONG")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Return once ``condition`` holds; raise ``TimeoutError`` if it does not come to that."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not ready within {PATIENCE_S:g} s")
        time.sleep(0.02)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the process: asked first, then made to."""
    process.terminate()
    try:
        process.wait(timeout=PATIENCE_S / 3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
