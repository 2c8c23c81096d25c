"""The other end: publishes to topics, and waits while a hub is full.

``group_send`` may drop by contract, so a publisher that only sends cannot tell a full process from
an idle one. This one sends a barrier behind every ``window`` messages. A hub answers a barrier when
it has taken it off its channel, and by then it has taken everything that was sent before, because a
channel is first in, first out. With two windows of at most half a hub channel's capacity between
them (divided by the number of publishers), no channel ever fills up and nothing is dropped.
"""

import asyncio
import logging
import secrets
import time
from collections import Counter
from typing import Any

from channels_hub.hub import GROUP, HUBS
from channels_hub.records import Record, check_topic, pack

logger = logging.getLogger("channels_hub")

RETRY_S = 0.25


class Publisher:
    """Publishes to topics over ``layer``, from one event loop.

    ``window`` is the number of messages between two barriers; 0 sends none, and waits for nobody.
    A hub that does not answer a barrier within ``patience_s`` is taken for dead: it is no longer
    waited for, ``given_up`` counts it, and it is back as soon as it answers again.
    """

    def __init__(self, layer: Any, *, window: int = 256, patience_s: float = 5.0) -> None:
        self.layer = layer
        self.window = window
        self.patience_s = patience_s
        self.publisher = secrets.randbits(32)
        self.position = 0
        self.given_up = 0
        self.waited_s = 0.0  # for hubs, in all
        self.hubs: dict[str, int] = {}  # a hub's channel -> the last barrier it has passed
        self._sequences: Counter[str] = Counter()
        self._barrier = 0  # the last one sent
        self._channel = ""
        self._answers: asyncio.Task[None] | None = None
        self._passed = asyncio.Event()

    async def start(self) -> None:
        """Find the hubs that are there. Without this, the first window waits for nobody."""
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
        """Send ``body`` to ``topic``; return its sequence number there, counted from 1."""
        sequence = self._sequences[check_topic(topic)] = self._sequences[topic] + 1
        self.position += 1
        record = Record(time.time_ns(), self.publisher, self.position, sequence, topic, body)
        await self.layer.group_send(
            GROUP + topic, {"type": "hub.record", "topic": topic, "record": pack(record)}
        )
        if self.window and self.position % self.window == 0:
            await self._send_barrier()
            await self._await_barrier(self._barrier - 1)
        return sequence

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
            message = await self.layer.receive(self._channel)
            hub, barrier = message["hub"], message["barrier"]
            self.hubs[hub] = max(barrier, self.hubs.get(hub, 0))
            self._passed.set()
