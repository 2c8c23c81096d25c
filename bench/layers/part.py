"""One process of a measure: builds the layer, plays its roles, and prints what they found.

``python -m bench.layers.part '{"roles": [...], ...}'`` says that it is ready, waits for the word
of its parent, plays, and waits to be stopped: a JSON value a line. In-memory plays every role of
a measure in one process; the others play one each.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable
from importlib import import_module
from typing import Any

from django.utils.module_loading import import_string  # type: ignore[import-untyped]


def say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


async def heard() -> str:
    return await asyncio.to_thread(sys.stdin.readline)


class Meeting:
    """Where the roles of one process meet, and through it those of all."""

    def __init__(self, roles: int) -> None:
        self._missing = roles
        self._said: dict[str, str | None] = {}
        self._others: asyncio.Future[dict[str, list[str]]] = asyncio.Future()
        self.stopped: asyncio.Task[str] | None = None
        self.started_cpu_s = time.process_time()

    async def ready(self, role: str, said: str | None) -> dict[str, list[str]]:
        """Return what every role said, once all are ready and the parent gave the word."""
        self._said[role] = said
        self._missing -= 1
        if not self._missing:
            say({"ready": self._said})
            self._others.set_result(json.loads(await heard()))
            self.started_cpu_s = time.process_time()
            self.stopped = asyncio.create_task(heard())
        return await self._others


class Part:
    """What a role has in hand."""

    def __init__(self, role: str, layer: Any, meeting: Meeting, spec: dict[str, Any]) -> None:
        self.role = role
        self.layer = layer
        self.duration_s: float = spec["duration_s"]
        self.patience_s: float = spec["patience_s"]
        self.options: dict[str, Any] = spec["options"]
        self._run: str = spec["run"]
        self._meeting = meeting
        self._heard = 0
        self._waiting: asyncio.Task[Any] | None = None
        self._watched = False

    def name(self, stem: str) -> str:
        """Return a name that the processes of this measurement share, and no others."""
        return f"{stem}.{self._run}"

    async def ready(self, said: str | None = None) -> dict[str, list[str]]:
        """Say that this role is ready, with its channel; return what each role said."""
        return await self._meeting.ready(self.role, said)

    async def until_stopped(self, work: Awaitable[Any]) -> dict[str, Any]:
        """Do ``work`` until the parent says that it is over, or the work fails."""
        working, stopped = asyncio.ensure_future(work), self._meeting.stopped
        assert stopped is not None, "a role is ready before it works"
        await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            raise RuntimeError("the work ended by itself")
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return {}

    async def received(self, channel: str) -> dict[str, Any] | None:
        """Return the next message, ``None`` where none comes for ``patience_s`` to twice that.

        ``wait_for`` would make a timer of each message, and measure those.
        """
        self._waiting = asyncio.current_task()
        if not self._watched:
            self._watch()
        try:
            message = await self.layer.receive(channel)
        except asyncio.CancelledError:
            if self._waiting is not None:  # cancelled, and not by our watch
                raise
            return None
        self._waiting = None
        self._heard += 1
        return message  # type: ignore[no-any-return]

    def _watch(self) -> None:
        """Look again in ``patience_s``."""
        self._watched = True
        asyncio.get_running_loop().call_later(self.patience_s, self._look, self._heard)

    def _look(self, heard: int) -> None:
        """Give up where nothing was heard since the last look and somebody still waits."""
        if self._waiting is None or self._heard > heard:
            self._watch()
            return
        task, self._waiting, self._watched = self._waiting, None, False
        task.cancel()
        task.uncancel()


async def play(spec: dict[str, Any]) -> None:
    layer = import_string(spec["backend"])(**spec["config"]) if spec["backend"] else None
    meeting = Meeting(len(spec["roles"]))
    await asyncio.gather(*(play_one(role, layer, meeting, spec) for role in spec["roles"]))
    say({"cpu_s": time.process_time() - meeting.started_cpu_s})
    assert meeting.stopped is not None, "every role is ready once"
    await meeting.stopped  # leave together: the others may still be sending


async def play_one(path: str, layer: Any, meeting: Meeting, spec: dict[str, Any]) -> None:
    module, _, role = path.rpartition(".")
    part = Part(role, layer, meeting, spec)
    say({"role": role, "figures": await getattr(import_module(module), role)(part)})


def main() -> None:
    spec = json.loads(sys.argv[1])
    os.sched_setaffinity(0, spec["cpus"])
    factory = None
    if spec["loop"] == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(play(spec))


if __name__ == "__main__":
    main()
