"""Runs the load driver: Locust, headless, in a process of its own, on processors of its own.

The driver knows nothing of this project; it is told what to do on its command line, and what it
writes is read back as a ``bench.records.Load``.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from bench.errors import BadInput, unknown
from bench.records import Load, load_from

ROOT = Path(__file__).resolve().parent.parent
LOCUST_FILES = {"http": "locustfiles/http.py", "websocket": "locustfiles/websocket.py"}
START_S = 20.0  # for the interpreter and Locust to start and end on a busy machine
LOG_TAIL_LINES = 20
_RT_RUNTIME = Path("/proc/sys/kernel/sched_rt_runtime_us")
BAD_INPUT = 2  # the driver's exit code for it

# (test, mode) -> the locust file and its user class
TESTS = {
    ("latency", "open"): ("http", "Latency"),
    ("throughput", "closed"): ("http", "Throughput"),
    ("capacity", "autothrottle"): ("http", "Capacity"),
    ("echo", "open"): ("websocket", "EchoAtRate"),
    ("echo", "closed"): ("websocket", "Echo"),
    ("echo batch", "closed"): ("websocket", "EchoBatch"),
}


class LoadFailed(Exception):  # noqa: N818 - it says what happened
    """The generator did not deliver a measurement. ``log_tail`` is the end of what it printed."""

    def __init__(self, reason: str, log_tail: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.log_tail = log_tail


@dataclass(frozen=True)
class LoadSpec:
    """What the driver shall do. Raises ``BadInput`` for what cannot be done.

    ``url`` is the whole address with its path. Locust counts the run time in whole seconds, so
    ``duration_s + warmup_s`` is a whole number. ``expect_body`` of None checks no body.
    ``requests`` ends a closed loop over HTTP before its time. In an echo batch ``concurrency``
    sockets send ``messages`` each, again and again until ``duration_s`` is over; ``detail`` times
    their opening, sending and closing apart.
    """

    test: str
    mode: str
    url: str
    duration_s: float
    connection: str = "close"
    rate_rps: float | None = None
    concurrency: int | None = None
    warmup_s: float = 0.0
    timeout_s: float = 10.0
    max_in_flight: int = 1000
    arrivals: str = "constant"
    expect_body: str | None = "OK"
    requests: int | None = None
    messages: int | None = None
    detail: bool = False

    def __post_init__(self) -> None:
        if (self.test, self.mode) not in TESTS:
            names = (f"{test} ({mode})" for test, mode in TESTS)
            raise unknown("test", f"{self.test} ({self.mode})", names)
        if self.duration_s <= 0:
            raise BadInput(f"duration_s {self.duration_s:g}: a test lasts longer than 0 s")
        if self.warmup_s < 0:
            raise BadInput(f"warmup_s {self.warmup_s:g}: a warm-up lasts 0 s or longer")
        if (self.duration_s + self.warmup_s) % 1:
            raise BadInput(
                f"duration_s {self.duration_s:g} and warmup_s {self.warmup_s:g}: "
                "together they must be whole seconds"
            )
        if self.mode == "open" and (self.rate_rps is None or self.rate_rps <= 0):
            raise BadInput(f"rate_rps {self.rate_rps}: an open loop needs a rate above 0")
        if self.mode == "closed" and (self.concurrency is None or self.concurrency < 1):
            raise BadInput(f"concurrency {self.concurrency}: a closed loop needs 1 client or more")

    @property
    def limit_s(self) -> float:
        """How long the generator may live: start, warm-up, test, drain and end."""
        return START_S + self.warmup_s + self.duration_s + 2 * self.timeout_s


def command(spec: LoadSpec, json_path: Path) -> tuple[str, ...]:
    """Return the generator's command line, with paths as seen from the project's root."""
    file, user_class = TESTS[spec.test, spec.mode]
    parts = urlsplit(spec.url)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    options: dict[str, str | float | None] = {
        "--host": f"{parts.scheme}://{parts.netloc}",
        "--path": path or "/",
        "--run-time": f"{spec.duration_s + spec.warmup_s:.0f}s",
        "--warm-up": f"{spec.warmup_s:g}",
        "--timeout": f"{spec.timeout_s:g}",
        "--result-json": str(json_path),
        "--connection": spec.connection if file == "http" else None,
        "--expect-body": spec.expect_body if file == "http" else None,
        "--rps": f"{spec.rate_rps:g}" if spec.rate_rps else None,
        "--arrivals": spec.arrivals if spec.mode == "open" else None,
        "--clients": spec.concurrency if file == "http" else None,
        "--requests": spec.requests,
        "--connections": spec.concurrency if file == "websocket" else None,
        "--messages": spec.messages,
        # All at once, as clients do who know nothing of each other.
        "--opening": "0" if user_class == "EchoBatch" else None,
        "--detail": "yes" if spec.detail else None,
        "--max-in-flight": str(spec.max_in_flight),
    }
    given = [part for flag, value in options.items() if value for part in (flag, str(value))]
    # -P: the folder of a file called http.py must not become a place to import `http` from.
    locust = (sys.executable, "-P", "-m", "locust", "-f", LOCUST_FILES[file], user_class)
    # Failed requests are a result and not a failure of the generator.
    quiet = ("--headless", "--only-summary", "--exit-code-on-error", "0", "--loglevel", "WARNING")
    return (*locust, *quiet, *given)


class Generator:
    """A running generator. Made by ``running``."""

    def __init__(self, process: subprocess.Popen[bytes], spec: LoadSpec, folder: Path) -> None:
        self._process = process
        self._spec = spec
        self._folder = folder
        self._late = threading.Event()
        self.ordinary_because: str | None = None  # why it has no real-time priority

    @property
    def pid(self) -> int:
        return self._process.pid

    def result(self) -> Load:
        """Wait until the test is over and return what was measured.

        Raises ``BadInput`` with the driver's own sentence where it refused its options or found
        nobody at the url, and ``LoadFailed`` for anything else that left no measurement.
        """
        code = self._process.wait()
        if self._late.is_set():
            raise LoadFailed(
                f"the generator had not ended after {self._spec.limit_s:g} s, and was killed",
                self.log_tail(),
            )
        if code == BAD_INPUT:
            raise BadInput(self._complaint())
        if code:
            raise LoadFailed(f"the generator ended with exit code {code}", self.log_tail())
        return self._read()

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """Return the end of what the generator has printed."""
        text = (self._folder / "log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _complaint(self) -> str:
        lines = self.log_tail().splitlines() or ["the load driver refused its options"]
        return lines[-1].removeprefix("locust: error: ")

    def _read(self) -> Load:
        path = self._folder / "load.json"
        if not path.exists():
            raise LoadFailed("the generator wrote no result", self.log_tail())
        try:
            measured = load_from(json.loads(path.read_text()))
            measured = replace(measured, timeout_s=self._spec.timeout_s)
            return with_priority(measured, self.ordinary_because)
        except (ValueError, TypeError, KeyError) as error:
            raise LoadFailed(
                f"the generator's result is not one: {error}", self.log_tail()
            ) from error

    def _kill(self, *, late: bool) -> None:
        if late:
            self._late.set()
        with suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(self._process.pid, signal.SIGKILL)


@contextmanager
def running(spec: LoadSpec, *, cpus: Collection[int] | None = None) -> Iterator[Generator]:
    """Run the driver as ``spec`` says, on ``cpus`` if given; it is gone when the block ends.

    A generator that outlives ``spec.limit_s`` is killed, and its ``result`` says so.
    """
    with tempfile.TemporaryDirectory(prefix="load-") as name:
        folder = Path(name)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                pinned(command(spec, folder / "load.json"), cpus),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        generator = Generator(process, spec, folder)
        generator.ordinary_because = raise_priority(process.pid, cpus)
        watchdog = threading.Timer(spec.limit_s, generator._kill, kwargs={"late": True})
        watchdog.start()
        try:
            yield generator
        finally:
            watchdog.cancel()
            generator._kill(late=False)
            process.wait()


def raise_priority(pid: int, cpus: Collection[int] | None) -> str | None:
    """Let ``pid`` run before everybody else on its processors; return why not, if not.

    A generator that waits for its turn sends late, and lateness is what it is there to measure.
    Round robin, so that two of them take turns. It cannot take the machine with it: it is given
    the priority only where it is kept to some of the processors, and where the kernel leaves the
    others there a share of the time (``sched_rt_runtime_us``). Children and threads do not inherit
    it, and the server is no child of it.
    """
    if not cpus or len(cpus) >= (os.cpu_count() or 1):
        return "it has no processor of its own"
    if int(_RT_RUNTIME.read_text()) < 0:
        return "kernel.sched_rt_runtime_us is -1, so it could starve its processor"
    try:
        os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except ProcessLookupError:
        return "it had ended at once"
    except PermissionError:
        return "not permitted: it takes root, CAP_SYS_NICE or ulimit -r"
    return None


def with_priority(measured: Load, ordinary_because: str | None) -> Load:
    """Return ``measured`` with a note of the priority that the generator had."""
    if ordinary_because is None:
        return replace(measured, realtime=True)
    said = f"the generator ran at ordinary priority: {ordinary_because}"
    return replace(measured, realtime=False, warnings=(*measured.warnings, said))


def pinned(arguments: tuple[str, ...], cpus: Collection[int] | None) -> tuple[str, ...]:
    """Return the command line that runs ``arguments`` on ``cpus``. Pure."""
    if not cpus:
        return arguments
    return ("taskset", "--cpu-list", ",".join(map(str, sorted(cpus))), *arguments)
