"""How a sender learns what has arrived, beside the layer and at the same cost for every layer.

A sender that is held back by ChannelFull measures its own waiting; one that is not held back at all
fills a layer without bounds, such as Redis pub/sub, and measures memory. So every sender keeps a
window: at most so many messages are under way, fewer than the capacity, and the receiver says with
a byte in a FIFO that some have come. A byte stands for many messages, and costs next to nothing.
"""

import asyncio
import os
from contextlib import suppress

from bench.layers.part import Part

_AT_ONCE = 4096


class Acknowledgements:
    """The FIFO of one measurement, opened by both sides."""

    def __init__(self, part: Part) -> None:
        path = f"{part.options['folder']}/{part.name('acknowledgements')}"
        with suppress(FileExistsError):  # the other side was first
            os.mkfifo(path, 0o600)
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._patience_s = part.patience_s

    def give(self) -> None:
        """Say that one more lot has come."""
        os.write(self._descriptor, b"\0")

    async def come(self) -> int:
        """Return how many were given since the last call: 0 only where none comes in time."""
        with suppress(BlockingIOError):
            return len(os.read(self._descriptor, _AT_ONCE))
        try:
            async with asyncio.timeout(self._patience_s):
                await self._readable()
        except TimeoutError:
            return 0
        return len(os.read(self._descriptor, _AT_ONCE))

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        come: asyncio.Future[None] = loop.create_future()

        def arrived() -> None:
            loop.remove_reader(self._descriptor)
            if not come.done():
                come.set_result(None)

        loop.add_reader(self._descriptor, arrived)
        try:
            await come
        finally:
            loop.remove_reader(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)
