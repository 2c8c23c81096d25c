"""Real servers and real Locust runs for the tests of the load driver."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from bench.records import Load, load_from

HERE = Path(__file__).parent
LOCUST_FILES = HERE.parent.parent / "locustfiles"
RUN_LIMIT_S = 60


@dataclass
class Served:
    """A server under load. ``seen`` is there once it has stopped."""

    port: int
    process: subprocess.Popen[str]
    seen: dict[str, int] | None = None

    def wait_for(self, requests: int) -> None:
        """Return when so many requests have come."""
        until = time.monotonic() + RUN_LIMIT_S
        while self._requests() < requests:
            assert time.monotonic() < until, f"{self._requests()} of {requests} requests came"
            time.sleep(0.1)

    def _requests(self) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/seen", timeout=5) as reply:
            return json.load(reply)["requests"]

    def stop(self) -> dict[str, int]:
        """Stop the server, and return what it saw."""
        if self.seen is None:
            out, _ = self.process.communicate(timeout=10)
            self.seen = json.loads(out or "{}")
        return self.seen


@contextmanager
def _served(*arguments: str) -> Iterator[Served]:
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield Served(int(process.stdout.readline()), process)
        finally:
            process.kill()


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Start server.py with the behaviour given as keywords."""
    with ExitStack() as stack:

        def start(**behaviour: Any) -> Served:
            program = str(HERE / "server.py")
            return stack.enter_context(_served(program, json.dumps(behaviour)))

        yield start


@pytest.fixture
def serve_echo() -> Iterator[Callable[..., Served]]:
    """Start echo_server.py with a fault in every so many messages."""
    with ExitStack() as stack:

        def start(fault: str = "none", every: int = 1) -> Served:
            program = str(HERE / "echo_server.py")
            return stack.enter_context(_served(program, fault, str(every)))

        yield start


@dataclass(frozen=True)
class Driven:
    """A Locust run that has ended. ``load`` is None where it wrote no result."""

    code: int
    output: str
    load: Load | None


@pytest.fixture
def drive(tmp_path: Path) -> Callable[..., Driven]:
    """Run Locust headless, from a directory that is not the project's, and read its result."""

    def run(file: str, *arguments: object, seconds: int = 1) -> Driven:
        return _driven(tmp_path, file, *arguments, seconds=seconds)

    return run


def _driven(folder: Path, file: str, *arguments: object, seconds: int = 1) -> Driven:
    result = folder / "load.json"
    ended = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "locust", "-f", str(LOCUST_FILES / file)),
            *("--headless", "--only-summary", "-t", f"{seconds}s", "--result-json", result),
            *map(str, arguments),
        ],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_LIMIT_S,
        check=False,
    )
    load = load_from(json.loads(result.read_text())) if result.exists() else None
    return Driven(ended.returncode, ended.stdout, load)


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[Any, Driven]]:
    """Run Locust once for each case, all at the same time: most of a short run is waiting.

    A case is a key, what to serve (the arguments of a test server, or None) and the arguments of
    Locust, in which ``{}`` stands for the server's port.
    """

    def one(case: tuple[Any, tuple[str, ...] | None, tuple[object, ...]]) -> tuple[Any, Driven]:
        key, server, arguments = case
        with ExitStack() as stack:
            port = "none"
            if server is not None:
                program, *behaviour = server
                served = _served(str(HERE / program), *behaviour)
                port = str(stack.enter_context(served).port)
            filled = [str(part).replace("{}", port) for part in arguments]
            return key, _driven(tmp_path_factory.mktemp("run"), *filled)

    def run(cases: list[Any]) -> dict[Any, Driven]:
        with ThreadPoolExecutor(len(cases)) as pool:
            return dict(pool.map(one, cases))

    return run


@pytest.fixture
def percentile_ms() -> Callable[[str, float], float]:
    """Read a percentile out of a histogram payload, in milliseconds."""

    def read(payload: str, percentile: float) -> float:
        return HdrHistogram.decode(payload).get_value_at_percentile(percentile) / 1000

    return read
