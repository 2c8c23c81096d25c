"""The relay, at the server: calls to the workers behind the channel layer.

A plain relay costs one layer channel, one message each way and one waiting task a request. Here an
event loop has one reply channel, one task that sends and one that receives, for all its requests;
and what comes in while earlier requests are with a worker leaves as one message, so that a busy
server crosses the layer once for many requests, and an idle one at once.

At most once: nothing is sent twice. A reply finds its request by number; one that nobody waits for
(it came too late, or the layer delivered it twice) is counted and dropped.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from channels.exceptions import ChannelFull, MessageTooLarge
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.conf import settings

logger = logging.getLogger(__name__)

CHANNEL = "relay"
# Requests in one message. More would save little, and would keep other workers idle.
BATCH_MAX = 32
# How long a request waits for company while others are with a worker. Short, because the worker
# they are with may be the one that is stuck.
GATHER_S = 0.001
# Requests that may wait in one event loop; further ones are refused rather than left to time out.
WAITING_MAX = 1_000

Request = tuple[int, str, Any]  # number, kind, content


class RelayError(Exception):
    """A call without a reply. The text is for the client, ``status`` is its HTTP status."""

    status = 503


class NoAnswer(RelayError):  # noqa: N818 - as Django and Channels name theirs
    """No worker answered in time. Whether one has run the request is not known."""

    status = 504


class WorkerFailed(RelayError):  # noqa: N818
    """A worker took the request and could not answer it; its log says why."""

    status = 502


class TooLarge(RelayError):  # noqa: N818
    """The channel layer has no messages of that size."""

    status = 413


class Relay:
    """One event loop's calls. ``layer`` is any channel layer that crosses processes."""

    def __init__(self, layer: Any, timeout_s: float) -> None:
        self.unclaimed = 0  # replies that nobody waited for
        self._layer = layer
        self._timeout_s = timeout_s
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._outbox: list[Request] = []
        self._due = asyncio.Event()
        self._gathering: asyncio.TimerHandle | None = None
        self._carrier: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many calls wait for their reply."""
        return len(self._waiting)

    async def call(self, kind: str, content: Any) -> dict[str, Any]:
        """Return a worker's reply to ``content``: its ``content`` and the ``worker_pid``.

        ``kind`` names one of the worker's handlers. Raises ``RelayError``.
        """
        if len(self._waiting) >= WAITING_MAX:
            raise RelayError("Too many requests wait for a worker.")
        number = next(self._numbers)
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._outbox.append((number, kind, content))
        self._ensure_carrier()
        self._schedule()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await reply
        except TimeoutError:
            raise NoAnswer(f"No worker answered within {self._timeout_s:g} s.") from None
        finally:
            del self._waiting[number]

    def close(self) -> None:
        """Stop sending and receiving; calls that still wait fail."""
        if self._carrier is not None:
            self._carrier.cancel()

    def _schedule(self) -> None:
        """Send at once if no request is with a worker; else gather, as Nagle did for TCP."""
        if len(self._outbox) in (len(self._waiting), BATCH_MAX):
            self._due.set()
        elif self._gathering is None:
            loop = asyncio.get_running_loop()
            self._gathering = loop.call_later(GATHER_S, self._gathered)

    def _gathered(self) -> None:
        self._gathering = None
        if self._outbox:
            self._due.set()

    def _ensure_carrier(self) -> None:
        if self._carrier is None:
            self._carrier = asyncio.create_task(self._carry())
            self._carrier.add_done_callback(self._carrier_ended)

    async def _carry(self) -> None:
        # Under the default prefix, as consumers' channels are: the Redis layer receives for one
        # prefix at a time, and whoever waits under another would never hear anything.
        reply_to = await self._layer.new_channel()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._receive(reply_to))
            group.create_task(self._send(reply_to))

    def _carrier_ended(self, carrier: asyncio.Task[None]) -> None:
        """Fail every call: the layer broke. The next call tries it afresh."""
        self._carrier = None
        self._outbox.clear()
        error = None if carrier.cancelled() else carrier.exception()
        if error is not None:
            logger.error("The relay lost its channel layer", exc_info=error)
        self._fail(self._waiting, RelayError, "The channel layer failed.")

    async def _send(self, reply_to: str) -> None:
        while True:
            await self._due.wait()
            batch, self._outbox = self._outbox[:BATCH_MAX], self._outbox[BATCH_MAX:]
            if not self._outbox:
                self._due.clear()
            # Some may have gone away while they waited for company.
            batch = [request for request in batch if request[0] in self._waiting]
            if batch:
                await self._send_batch(reply_to, batch)

    async def _send_batch(self, reply_to: str, batch: Sequence[Request]) -> None:
        message = {
            "type": "relay.requests",
            "reply_to": reply_to,
            "expires_at": time.time() + self._timeout_s,
            "requests": batch,
        }
        try:
            await self._layer.send(CHANNEL, message)
        except ChannelFull:
            self._fail(numbers(batch), RelayError, "The channel layer is full.")
        except MessageTooLarge:
            await self._send_apart(reply_to, batch)

    async def _send_apart(self, reply_to: str, batch: Sequence[Request]) -> None:
        """Send what was too large as one message in one message each."""
        if len(batch) == 1:
            self._fail(numbers(batch), TooLarge, "The channel layer has no messages of that size.")
            return
        for request in batch:
            await self._send_batch(reply_to, [request])

    async def _receive(self, reply_to: str) -> None:
        while True:
            message = await self._layer.receive(reply_to)
            if self._outbox:
                self._due.set()
            for number, content in message["replies"]:
                self._settle(number, content, message["worker_pid"])

    def _settle(self, number: int, content: Any, worker_pid: int) -> None:
        reply = self._waiting.get(number)
        if reply is None or reply.done():
            self.unclaimed += 1
        elif content is None:
            reply.set_exception(WorkerFailed("The worker could not answer."))
        else:
            reply.set_result({"worker_pid": worker_pid, "content": content})

    def _fail(self, numbers: Iterable[int], kind: type[RelayError], text: str) -> None:
        for number in numbers:
            reply = self._waiting.get(number)
            if reply is not None and not reply.done():
                reply.set_exception(kind(text))


def numbers(batch: Iterable[Request]) -> Iterator[int]:
    return (number for number, _, _ in batch)


_relays: WeakKeyDictionary[asyncio.AbstractEventLoop, Relay] = WeakKeyDictionary()


def current() -> Relay:
    """Return the running loop's relay; raise ``RelayError`` where no worker could be reached."""
    loop = asyncio.get_running_loop()
    relay = _relays.get(loop)
    if relay is None:
        layer = get_channel_layer()
        if layer is None or isinstance(layer, InMemoryChannelLayer):
            raise RelayError("This deployment's channel layer does not reach other processes.")
        relay = _relays[loop] = Relay(layer, settings.RELAY_TIMEOUT_S)
    return relay


def close() -> None:
    """Close the running loop's relay, if it has one."""
    relay = _relays.pop(asyncio.get_running_loop(), None)
    if relay is not None:
        relay.close()


def counters() -> dict[str, int] | None:
    """Return what this process's relays count; ``None`` where nothing was relayed."""
    relays = list(_relays.values())
    if not relays:
        return None
    return {
        "waiting": sum(relay.waiting for relay in relays),
        "unclaimed": sum(relay.unclaimed for relay in relays),
    }
