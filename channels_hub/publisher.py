"""The other end: publishes to topics, and waits while a hub is full.

``group_send`` may drop by contract, so a publisher that only sends cannot tell a full process from
an idle one. This one sends a barrier behind every window: so many messages or so many bytes,
whichever comes first. A hub answers a barrier when it has taken it off its channel, and by then it
has taken everything that was sent before, because a channel is first in, first out. So two windows
of each publisher wait at a hub at most. They must fit into the hub's channel and into what the
layer keeps for a process; then no channel ever fills up and nothing is dropped. That holds for as
many publishers at once as each of them has been told of: they divide the room.
"""

import asyncio
import logging
import secrets
import time
from collections import Counter
from typing import Any

from channels_hub.hub import GROUP, HUBS
from channels_hub.records import HEADER, Record, check_topic, pack

logger = logging.getLogger("channels_hub")

# Half of what may wait at a hub, of all publishers together. channels_ipc keeps 1 MiB for a
# process, in 256 pages that a message larger than half of one has to itself: twice this, in
# messages of just more than half a page with what the layer adds to each, is 240 of them.
WINDOW = 256  # messages
WINDOW_BYTES = 224 * 1024  # of records
RETRY_S = 0.25


class Publisher:
    """Publishes to topics over ``layer``, from one task.

    ``publishers`` is how many there are at once, at most; it shares the room of a hub with them.
    ``window`` messages or ``window_bytes`` of records, of all of them together, come between two
    barriers; a window of 0 sends none, and waits for nobody. A record of more bytes than that has a
    window to itself. ``waited_s`` is the time spent waiting for hubs.
    A hub that does not answer a barrier within ``patience_s`` is taken for dead: it is no longer
    waited for, ``given_up`` counts it, and it is back as soon as it answers again.
    """

    def __init__(
        self,
        layer: Any,
        *,
        publishers: int = 4,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        patience_s: float = 5.0,
    ) -> None:
        self.layer = layer
        self.window = window and max(1, window // publishers)
        self.window_bytes = window_bytes // publishers
        self.patience_s = patience_s
        self.publisher = secrets.randbits(32)
        self.position = 0
        self.given_up = 0
        self.waited_s = 0.0
        self.hubs: dict[str, int] = {}  # a hub's channel -> the last barrier it has passed
        self._sequences: Counter[str] = Counter()
        self._barrier = 0  # the last one sent, and what was sent since:
        self._messages = self._bytes = 0
        self._channel = ""
        self._answers: asyncio.Task[None] | None = None
        self._passed = asyncio.Event()

    async def start(self) -> None:
        """Find the hubs that are there, to wait for them. Without a window this is not needed."""
        self._channel = await self.layer.new_channel()
        self._answers = asyncio.get_running_loop().create_task(self._listen())
        await self._send_barrier()
        await asyncio.sleep(RETRY_S)

    async def close(self) -> None:
        """Wait until every hub has taken everything, then stop listening."""
        if self._answers is None:
            return
        await self._send_barrier()
        await self._await_barrier(self._barrier)
        self._answers.cancel()
        await asyncio.gather(self._answers, return_exceptions=True)

    async def publish(self, topic: str, body: bytes) -> int:
        """Send ``body`` to ``topic``; return its sequence number there, counted from 1.

        Raises ``RuntimeError`` before ``start()``, where there is a window: no hub could answer.
        """
        if self.window and not self._channel:
            raise RuntimeError(
                "this publisher was not started: await start() first, or give it window=0"
            )
        size = HEADER.size + len(check_topic(topic)) + len(body)
        if self.window and (
            self._messages >= self.window or self._bytes + size > self.window_bytes
        ):
            await self._end_window()
        self._messages += 1
        self._bytes += size
        sequence = self._sequences[topic] = self._sequences[topic] + 1
        self.position += 1
        record = Record(time.time_ns(), self.publisher, self.position, sequence, topic, body)
        await self.layer.group_send(
            GROUP + topic, {"type": "hub.record", "topic": topic, "record": pack(record)}
        )
        return sequence

    async def _end_window(self) -> None:
        self._messages = self._bytes = 0
        await self._send_barrier()
        await self._await_barrier(self._barrier - 1)

    async def _send_barrier(self) -> None:
        self._barrier += 1
        await self._repeat_barrier()

    async def _repeat_barrier(self) -> None:
        message = {"type": "hub.barrier", "barrier": self._barrier, "reply_to": self._channel}
        await self.layer.group_send(HUBS, message)

    async def _await_barrier(self, barrier: int) -> None:
        began = time.monotonic()
        await self._wait(barrier, began + self.patience_s)
        self.waited_s += time.monotonic() - began

    async def _wait(self, barrier: int, deadline: float) -> None:
        while behind := [hub for hub, passed in self.hubs.items() if passed < barrier]:
            if time.monotonic() > deadline:
                self._give_up(behind, barrier)
                return
            self._passed.clear()
            try:
                async with asyncio.timeout(RETRY_S):
                    await self._passed.wait()
            except TimeoutError:
                # The barrier itself may have been dropped at a full channel.
                await self._repeat_barrier()

    def _give_up(self, hubs: list[str], barrier: int) -> None:
        for hub in hubs:
            del self.hubs[hub]
        self.given_up += len(hubs)
        logger.warning(
            "%d hubs have not passed barrier %d in %g s and are no longer waited for: %s",
            len(hubs),
            barrier,
            self.patience_s,
            ", ".join(hubs),
        )

    async def _listen(self) -> None:
        while True:
            try:
                message = await self.layer.receive(self._channel)
            except Exception:
                # Deaf, it would take every hub for silent, and from then on wait for none.
                logger.exception("a publisher cannot hear its hubs: it tries again")
                await asyncio.sleep(RETRY_S)
                continue
            hub, barrier = message["hub"], message["barrier"]
            self.hubs[hub] = max(barrier, self.hubs.get(hub, 0))
            self._passed.set()
