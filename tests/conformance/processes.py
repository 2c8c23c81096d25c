"""Real processes that build the same layer from the same settings, driven from a test."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any

from channels.exceptions import ChannelFull

from .participant import decode, encode

PARTICIPANT = Path(__file__).with_name("participant.py")
SPARES = 4  # started ahead, while other rules are checked
PATIENCE_S = 20.0  # a busy machine starts a Python with Django in it slowly


class RemoteError(Exception):
    """What a call raised in the other process, as its type's name and its text."""


class Process:
    """One other process of the deployment. Calls may overlap; each awaits its own answer."""

    def __init__(self, *arguments: str) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, str(PARTICIPANT), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment(),
        )
        self._ids = count()
        self._answers: dict[int, Future[Any]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @staticmethod
    def environment() -> dict[str, str]:
        """Return the environment in which a process finds the modules that this one finds."""
        return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    @property
    def pid(self) -> int:
        return self._popen.pid

    async def call(self, name: str, *arguments: Any, patience_s: float = PATIENCE_S) -> Any:
        """Return what ``Participant.<name>`` returned; raise what it raised."""
        answer = self._ask(name, *arguments)
        return await asyncio.wait_for(asyncio.wrap_future(answer), patience_s)

    def _ask(self, name: str, *arguments: Any) -> Future[Any]:
        number = next(self._ids)
        self._answers[number] = answer = Future()
        self._popen.stdin.write(encode((number, name, arguments)))
        self._popen.stdin.flush()
        return answer

    def _read(self) -> None:
        for line in self._popen.stdout:
            number, outcome, value = decode(line)
            answer = self._answers.pop(number)
            if not answer.set_running_or_notify_cancel():
                continue
            if outcome == "returned":
                answer.set_result(value)
            else:
                answer.set_exception(
                    ChannelFull() if value.startswith("ChannelFull") else RemoteError(value)
                )

    def stall(self) -> None:
        """SIGSTOP: the process is there, and does nothing."""
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._popen.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone. Harmless on one that is gone already."""
        self._popen.kill()
        self._popen.wait(timeout=PATIENCE_S)
        self._reader.join(timeout=PATIENCE_S)
        self._popen.stdin.close()
        self._popen.stdout.close()

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    # What the rules ask of another process, spelled out so that they read well.

    async def new_channel(self) -> str:
        return await self.call("new_channel")

    async def send(self, channel: str, message: Mapping[str, Any]) -> None:
        await self.call("send", channel, message)

    async def receive(self, channel: str, timeout_s: float = 5.0) -> dict[str, Any] | None:
        """Return the next message, or ``None`` where none comes within ``timeout_s``."""
        return await self.call("receive", channel, timeout_s)

    async def consume(self, channel: str, log: Path | None = None, last: int | None = None) -> None:
        """Receive from now on, in the background, noting each message's ``id``.

        ``last`` is how many until the process kills itself, right when receive() has returned.
        """
        await self.call("consume", channel, str(log) if log else None, last)

    async def gone(self) -> None:
        """Return when the process has ended by itself."""
        await asyncio.to_thread(self._popen.wait, PATIENCE_S)

    async def consumed(self) -> list[int]:
        """Return the ids received so far."""
        return await self.call("consumed")


class Processes:
    """Keeps processes between tests: starting one costs more than most rules take to check."""

    def __init__(self) -> None:
        self._idle: list[Process] = []
        self._used: list[Process] = []

    async def take(self, backend: str, config: Mapping[str, Any], number: int) -> list[Process]:
        """Return ``number`` processes that have built ``backend`` from ``config``."""
        taken = [self._idle.pop() if self._idle else Process() for _ in range(number)]
        self._used += taken
        await asyncio.gather(*(one.call("build", backend, dict(config)) for one in taken))
        return taken

    async def give_back(self) -> None:
        """Close the layers of the processes in use; kill those that cannot or are gone."""
        used, self._used = self._used, []
        for one, clean in zip(used, await asyncio.gather(*map(closed, used)), strict=True):
            if clean:
                self._idle.append(one)
            else:
                one.kill()
        while len(self._idle) < SPARES:
            self._idle.append(Process())

    def stop(self) -> None:
        for one in (*self._idle, *self._used):
            one.kill()


async def closed(process: Process) -> bool:
    """Close the process's layer; say whether that went well."""
    if not process.alive:
        return False
    process.resume()
    try:
        await process.call("close", patience_s=5.0)
    except (RemoteError, TimeoutError, OSError):
        return False
    return True
