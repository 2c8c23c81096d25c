"""The processes of one measurement, and how they are let play."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bench.layers.processor import cpu_s
from bench.provenance import PROJECT

PATIENCE_S = 30.0  # beyond the measurement itself, for starting and stopping


class PartFailed(Exception):  # noqa: N818 - it says what happened
    """A process of the measurement failed; the text ends with what it wrote to standard error."""


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
    processes: Sequence[Process], redis_pid: int | None, look: Callable[[], None]
) -> tuple[dict[str, list[dict[str, Any]]], float]:
    """Let them play; return each role's figures, and the processor time of all, in seconds.

    The first process plays the leading role: when it is done, the others are stopped. ``look`` is
    called right before and right after.
    """
    said: dict[str, list[str]] = {}
    for process in processes:
        for role, channel in process.heard()["ready"].items():
            said.setdefault(role, []).append(channel)
    look()
    server_s = cpu_s(redis_pid) if redis_pid else 0.0
    for process in processes:
        process.say(said)
    figures: dict[str, list[dict[str, Any]]] = {}
    first = processes[0].heard()
    server_s = cpu_s(redis_pid) - server_s if redis_pid else 0.0
    look()
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
