"""One more process of a deployment: builds the layer it is told of, and calls it as it is told.

A program of its own, started by ``processes.py``. It reads ``(number, name, arguments)`` a line
from standard input, and answers with ``(number, "returned" or "raised", value)``.
"""

import asyncio
import contextlib
import marshal
import os
import signal
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

from channels.exceptions import ChannelFull
from django.utils.module_loading import import_string


# One line a value. marshal, because JSON has no bytes; both ends are the same interpreter.
def encode(value: Any) -> bytes:
    return b64encode(marshal.dumps(value)) + b"\n"


def decode(line: bytes) -> Any:
    return marshal.loads(b64decode(line))


LINE_BYTES = 64 * 1024 * 1024  # longer than any message that a rule sends


class Participant:
    """The calls, each a coroutine method, of which a test may have several under way."""

    def __init__(self) -> None:
        self._consumers: list[asyncio.Task[None]] = []
        self._consumed: list[int] = []

    async def build(self, backend: str, config: dict[str, Any]) -> None:
        self.layer = import_string(backend)(**config)

    async def close(self) -> None:
        for consumer in self._consumers:
            consumer.cancel()
        await asyncio.gather(*self._consumers, return_exceptions=True)
        self._consumers, self._consumed = [], []
        await close(self.layer)

    async def new_channel(self) -> str:
        return await self.layer.new_channel()

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        await self.layer.send(channel, message)

    async def send_until_full(self, channel: str, message: dict[str, Any], most: int) -> int | None:
        """Send copies numbered by ``id``; return how many went in, None if it never was full."""
        for number in range(most):
            try:
                await self.layer.send(channel, {**message, "id": number})
            except ChannelFull:
                return number
        return None

    async def receive(self, channel: str, timeout_s: float) -> dict[str, Any] | None:
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(self.layer.receive(channel), timeout_s)
        return None

    async def consume(self, channel: str, log: str | None, last: int | None) -> None:
        self._consumers.append(asyncio.create_task(self._consume(channel, log, last)))
        await asyncio.sleep(0)

    async def _consume(self, channel: str, log: str | None, last: int | None) -> None:
        while True:
            message = await self.layer.receive(channel)
            self._consumed.append(message["id"])
            if log:
                append(Path(log), message["id"])
            if len(self._consumed) == last:
                os.kill(os.getpid(), signal.SIGKILL)

    async def consumed(self) -> list[int]:
        return list(self._consumed)

    async def group_add(self, group: str, channel: str) -> None:
        await self.layer.group_add(group, channel)

    async def group_discard(self, group: str, channel: str) -> None:
        await self.layer.group_discard(group, channel)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        await self.layer.group_send(group, message)

    async def flush(self) -> None:
        await self.layer.flush()


def append(log: Path, number: int) -> None:
    """Add one line in one write, which a kill cannot cut in two."""
    with log.open("ab", buffering=0) as file:
        file.write(b"%d\n" % number)


async def close(layer: Any) -> None:
    """Free what the layer holds. Channels names no call for it: ``close`` where there is one."""
    await (layer.close() if hasattr(layer, "close") else close_pools(layer))


async def close_pools(layer: Any) -> None:
    """Redis core calls it ``close_pools``; pub/sub closes its connections in ``flush``."""
    await (layer.close_pools() if hasattr(layer, "close_pools") else layer.flush())


async def answer(participant: Participant, line: bytes, output: int) -> None:
    number, name, arguments = decode(line)
    try:
        outcome = ("returned", await getattr(participant, name)(*arguments))
    except Exception as error:  # noqa: BLE001 - the test that asked decides what it means
        outcome = ("raised", f"{type(error).__name__}: {error}")
    os.write(output, encode((number, *outcome)))


async def serve(output: int) -> None:
    """Answer the lines on standard input until it ends."""
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    participant, tasks = Participant(), set()
    while line := await reader.readline():
        task = asyncio.create_task(answer(participant, line, output))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def private_output() -> int:
    """Keep standard output for the answers: what a layer prints goes to standard error."""
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


if __name__ == "__main__":
    output = private_output()
    if "uvloop" in sys.argv:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(output))
    else:
        asyncio.run(serve(output))
