"""One measurement: a measure on a peer, in processes of its own."""

import json
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.layers.measures import Measure
from bench.layers.peers import Peer, Places, config
from bench.layers.processor import cpu_s
from bench.provenance import PROJECT

PATIENCE_S = 30.0  # beyond the measurement itself, for starting and stopping
SILENCE_S = 2.0  # how long a message may take before it counts as lost
CHANNELS1_PYTHON = PROJECT / ".venv-channels1" / "bin" / "python"
CHANNELS1_MISSING = "no environment with asgi_ipc: make channels1-env"


class PartFailed(Exception):  # noqa: N818 - it says what happened
    """A process of the measurement failed; the text ends with what it wrote to standard error."""


@dataclass(frozen=True)
class Cell:
    """What one measurement found. ``failure`` says why there is nothing."""

    measure: str
    peer: str
    round: int
    figures: dict[str, float | None] = field(default_factory=dict)
    sent: int | None = None
    received: int | None = None
    lost: int | None = None
    duplicates: int | None = None
    cpu_us_per_message: float | None = None  # every process, redis-server included
    failure: str | None = None


class Process:
    """One part of the measurement, and the lines it says."""

    def __init__(self, command: Sequence[str], patience_s: float) -> None:
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
        )
        self._errors: list[str] = []
        self._watch = threading.Thread(target=self._read_errors, daemon=True)
        self._watch.start()
        # A part that hangs is killed, which ends the read of its next line.
        self._limit = threading.Timer(patience_s, self._popen.kill)
        self._limit.start()

    def _read_errors(self) -> None:
        assert self._popen.stderr is not None
        self._errors += self._popen.stderr

    def heard(self) -> dict[str, Any]:
        """Return the next line; raise PartFailed where the process ended instead."""
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        if not line:
            self.stop()
            raise PartFailed("".join(self._errors[-12:]) or "it did not end in time")
        return dict(json.loads(line))

    def say(self, value: Any) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps(value) + "\n")
        self._popen.stdin.flush()

    def stop(self) -> None:
        self._limit.cancel()
        self._popen.kill()
        self._popen.wait(timeout=PATIENCE_S)
        self._watch.join(timeout=PATIENCE_S)
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            assert stream is not None
            stream.close()


def measured(
    measure: Measure,
    peer: Peer,
    places: Places,
    redis_pid: int | None,
    duration_s: float,
    number: int,
) -> Cell:
    """Measure once. A failure is a result, too: it is written down, and the run goes on."""
    if peer.name == "asgi_ipc" and not CHANNELS1_PYTHON.exists():
        return Cell(measure.name, peer.name, number, failure=CHANNELS1_MISSING)
    run = secrets.token_hex(4)
    try:
        with started(commands(measure, peer, places, duration_s, run), duration_s) as processes:
            figures, used_s = played(processes, redis_pid if peer.transport else None)
    except PartFailed as error:
        return Cell(measure.name, peer.name, number, failure=str(error).strip())
    finally:
        remove_segments(run)
    return cell(measure, peer, number, figures, used_s)


def remove_segments(run: str) -> None:
    """Remove the shared memory that asgi_ipc never removes itself."""
    for segment in Path("/dev/shm").glob(f"*bench{run}-*"):  # noqa: S108 - where it puts them
        segment.unlink()


def commands(
    measure: Measure, peer: Peer, places: Places, duration_s: float, run: str
) -> list[list[str]]:
    """Return the command of each process. A layer within one process gets one for all roles."""
    spec = {
        "backend": peer.backend,
        "config": config(peer, places) | measure.settings,
        "duration_s": duration_s,
        "patience_s": SILENCE_S,
        "options": measure.options | {"folder": str(places.redis_socket.parent)},
        "loop": measure.loop,
        "run": run,
    }
    roles = [role_path(role, peer) for role in measure.roles]
    casts = [[role] for role in roles] if peer.crosses_processes else [roles]
    return [[*program(peer), json.dumps(spec | {"roles": cast})] for cast in casts]


def role_path(role: str, peer: Peer) -> str:
    """``raw`` plays the ping-pong itself, without a layer."""
    if peer.name == "raw":
        return f"bench.layers.raw.raw_{role.rpartition('.')[2]}"
    return f"bench.layers.{role}"


def program(peer: Peer) -> list[str]:
    if peer.name == "asgi_ipc":
        return [str(CHANNELS1_PYTHON), str(Path(__file__).with_name("asgi_ipc_peer.py"))]
    return [sys.executable, "-m", "bench.layers.part"]


@contextmanager
def started(command_lines: Sequence[Sequence[str]], duration_s: float) -> Iterator[list[Process]]:
    processes: list[Process] = []
    try:
        for line in command_lines:
            processes.append(Process(line, 3 * duration_s + PATIENCE_S))
        yield processes
    finally:
        for process in processes:
            process.stop()


def played(
    processes: Sequence[Process], redis_pid: int | None
) -> tuple[dict[str, list[dict[str, Any]]], float]:
    """Let them play; return each role's figures, and the processor time of all, in seconds.

    The first process plays the leading role: when it is done, the others are stopped.
    """
    said: dict[str, list[str]] = {}
    for process in processes:
        for role, channel in process.heard()["ready"].items():
            said.setdefault(role, []).append(channel)
    server_s = cpu_s(redis_pid) if redis_pid else 0.0
    for process in processes:
        process.say(said)
    figures: dict[str, list[dict[str, Any]]] = {}
    first = processes[0].heard()
    server_s = cpu_s(redis_pid) - server_s if redis_pid else 0.0
    for process in processes:
        process.say("stop")
    heard = [first, *(line for process in processes for line in to_the_end(process))]
    for line in heard:
        if "role" in line:
            figures.setdefault(line["role"], []).append(line["figures"])
    return figures, server_s + sum(line.get("cpu_s", 0.0) for line in heard)


def to_the_end(process: Process) -> Iterator[dict[str, Any]]:
    """Yield what a process says until it tells its processor time, which comes last."""
    line: dict[str, Any] = {}
    while "cpu_s" not in line:
        line = process.heard()
        yield line


def cell(
    measure: Measure,
    peer: Peer,
    number: int,
    figures: dict[str, list[dict[str, Any]]],
    used_s: float,
) -> Cell:
    """Put together what the processes found: figures of the leading role, counts of all."""
    merged: dict[str, Any] = {}
    for one in (one for ones in figures.values() for one in ones):
        for key, value in one.items():
            merged[key] = merged[key] + value if key in merged else value
    if "deliveries" in merged:
        merged["received"] = merged.pop("deliveries")
    if "sent" in merged:
        merged["lost"] = merged["sent"] - merged["received"]
    counts = {key: merged.pop(key, None) for key in ("sent", "received", "lost", "duplicates")}
    per_message = (
        1e6 * used_s / counts["received"] if counts["received"] and measure.counts_cpu else None
    )
    return Cell(measure.name, peer.name, number, merged, **counts, cpu_us_per_message=per_message)
