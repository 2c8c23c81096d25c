"""The hub: one per process and event loop, between a channel layer and the clients' outboxes."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer

from channels_hub.history import History
from channels_hub.outbox import Outbox
from channels_hub.recall import Recaller
from channels_hub.records import enclose

logger = logging.getLogger("channels_hub")

GROUP = "topic."  # and the topic's name: the group of the hubs that want it
HUBS = "hubs"  # the group of all hubs

# The channel layer that hubs use where the settings have one of this name; the default one else.
# One of its own gives a hub a capacity of its own.
ALIAS = "hub"

HISTORY_BYTES = 64 * 1024 * 1024
LARGE_BLOCK_BYTES = 16 * 1024 * 1024

# How many messages are taken before the loop's other tasks have a turn. A receive() that finds a
# message does not suspend, so without a turn a busy layer would starve every socket.
BURST = 256

JOINED_AT_ONCE = 64

# A round of flushing gives each client with something pending one frame. Rounds may take this share
# of the time: the dearer the last one was, the longer after it the next one begins, and the more it
# finds to put into each frame. An idle hub flushes at once. The bound is what a record may wait: a
# busy process delivers 15 % more with 0.15 s than with 0.1, at a p95 of 160 ms instead of 106; with
# 0.2 s it is less than another tenth, at 210 to 270 ms.
FLUSH_SHARE = 0.25
LONGEST_PERIOD_S = 0.15
# How many clients are served before the layer's channel and the other sockets have a turn: a round
# of a thousand in one go would hold everybody else up for as long as it takes.
SERVED_AT_ONCE = 32

_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, "Hub"]] = WeakKeyDictionary()


def hub_layer(alias: str = ALIAS) -> Any:
    """Return the channel layer called ``alias``, the default one where there is none."""
    return get_channel_layer(alias) or get_channel_layer()


def dropped_by(layer: Any) -> int | None:
    """Return how many messages this process's ``layer`` has dropped; None where it does not count.

    A layer counts in an attribute ``dropped``: a number, or something with a ``count``.
    """
    # Not by getattr: a layer with a part for each loop looks for the loop, and a view has none.
    dropped = getattr(layer, "__dict__", {}).get("dropped")
    return getattr(dropped, "count", dropped)


def counters() -> dict[str, int | None] | None:
    """Return what this process's hubs have counted, in all; None where there is none.

    The keys are those of ``Hub``; ``topics`` are those that somebody wants now, ``layer_dropped``
    is what the channel layer has dropped in this process, None where it does not count.
    """
    hubs = [hub for by_alias in list(_hubs.values()) for hub in list(by_alias.values())]
    if not hubs:
        return None
    names = ("received", "delivered", "dropped", "abandoned", "ignored", "topics")
    counted: dict[str, int | None] = {
        name: sum(getattr(hub, name) for hub in hubs) for name in names
    }
    layers = {hub.layer for hub in hubs}
    dropped = [number for layer in layers if (number := dropped_by(layer)) is not None]
    return counted | {"layer_dropped": sum(dropped) if dropped else None}


def portions(topics: list[str]) -> Iterator[list[str]]:
    """Yield as many topics at a time as are joined or left side by side.

    Side by side, because a layer on a network answers one round trip later; in portions, because
    the loop has sockets to serve, and another client's few topics should not wait for many.
    """
    for start in range(0, len(topics), JOINED_AT_ONCE):
        yield topics[start : start + JOINED_AT_ONCE]


async def all_of(calls: Iterable[Awaitable[None]]) -> None:
    """Wait for all, then raise what the first to fail raised: none may overtake what comes next."""
    for ended in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended


def keep_freed_memory() -> None:
    """Have the C library keep the memory of a freed frame for the next one.

    glibc gives the end of the heap back to the kernel as soon as 128 KiB of it are free, and gets
    it again, page by page and zeroed, for the next frame: 15 % of a busy hub's time. It stops that
    by itself once a program has freed a large block (mallopt(3), M_MMAP_THRESHOLD and
    M_TRIM_THRESHOLD): here is one. Elsewhere this does nothing.
    """
    bytes(LARGE_BLOCK_BYTES)


class Hub:
    """Joins each topic once for all clients of this process and loop, and hands its messages out.

    ``await Hub.current()`` gives the running loop's hub. Counters, all since the start:
    ``received`` layer messages, ``delivered`` records put into outboxes, ``dropped`` records that a
    slow client's limit forgot, ``abandoned`` records that were still waiting for a client when it
    left, ``ignored`` messages for a topic that nobody here wants any more.
    ``history`` remembers the newest ``HISTORY_BYTES`` of what was received.
    """

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self.channel = ""
        self.closed = False
        self.history = History(HISTORY_BYTES)
        self.received = self.delivered = self.dropped = self.abandoned = self.ignored = 0
        # topic -> its clients, each with what it is still to be sent, to append to: asking the
        # outbox for that with each record takes longer.
        self._clients: dict[str, dict[Outbox, list[bytes]]] = {}
        self._joined: set[str] = set()
        self._joining = asyncio.Lock()
        self._dirty: set[Outbox] = set()
        self._round: list[Outbox] = []  # whom the round of flushing under way has yet to serve
        self._round_due = False  # or under way
        self._round_began = self._not_before = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        # What other hubs and publishers may ask, by the type of the message.
        self.handlers: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
            "hub.barrier": self._pass_barrier
        }
        # Here and not with the first poll: a process of sockets alone can vouch for topics, too.
        self.recaller = Recaller(self)
        self.polls: Any = None  # the clients that poll, where there are any: PollSessions

    @classmethod
    async def current(cls, alias: str = ALIAS) -> "Hub":
        """Return the running loop's hub over the layer called ``alias``; start it if need be."""
        hubs = _hubs.setdefault(asyncio.get_running_loop(), {})
        hub = hubs.get(alias)
        if hub is None or hub.closed:
            hub = hubs[alias] = cls(hub_layer(alias))
        async with hub._joining:
            if not hub.channel:
                await hub.start()
        return hub

    async def start(self) -> None:
        """Take a channel and begin to receive. ``current`` does this."""
        keep_freed_memory()
        # With the usual prefix: channels_redis reads one prefix of a process at a time, and waits
        # there until something comes.
        channel = await self.layer.new_channel()
        await self.layer.group_add(HUBS, channel)
        self.channel = channel
        for coroutine in (self._receive(), self._renew(), self._watch()):
            task = asyncio.get_running_loop().create_task(coroutine)
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Leave every topic and stop. Clients' outboxes end; a later ``current()`` starts anew."""
        self._stop("the hub was closed")
        await asyncio.gather(*self._tasks, return_exceptions=True)
        async with self._joining:
            for portion in portions(list(self._joined)):
                await self._leave(portion)
            await self.layer.group_discard(HUBS, self.channel)

    def _stop(self, reason: str) -> None:
        self.closed = True
        for task in self._tasks:
            task.cancel()
        for outbox in set().union(*self._clients.values()):
            outbox.end(reason)
        self._clients.clear()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # What was published meanwhile may be lost, and a client must not take silence for
            # quiet: it is told, and asks again on a new hub.
            logger.error("the hub stops: its channel layer failed", exc_info=error)
            self._stop(f"the channel layer failed: {error}")

    @property
    def topics(self) -> int:
        """How many topics somebody in this process wants."""
        return len(self._clients)

    async def part(self, outbox: Outbox, topics: Iterable[str]) -> None:
        """Unsubscribe a client that has left, and count what it did not wait for."""
        await self.unsubscribe(outbox, topics)
        self.abandoned += outbox.discard()

    async def subscribe(self, outbox: Outbox, topics: Collection[str]) -> None:
        """Put every message of ``topics`` into ``outbox`` from now on.

        When this returns, nothing that is published is missed: the process has joined every topic.
        """
        if self.closed:
            outbox.end("the hub was closed")
            return
        for topic in topics:
            self._clients.setdefault(topic, {})[outbox] = outbox.pending
        # Joined means that the layer has said so: a topic that is being joined is still missing.
        missing = [topic for topic in topics if topic not in self._joined]
        for portion in portions(missing):
            async with self._joining:
                await self._join([topic for topic in portion if topic not in self._joined])

    async def unsubscribe(self, outbox: Outbox, topics: Iterable[str]) -> None:
        """Stop putting messages of ``topics`` into ``outbox``; leave those that nobody wants."""
        idle = []
        for topic in topics:
            clients = self._clients.get(topic)
            if clients is None:
                continue
            clients.pop(outbox, None)
            if not clients:
                del self._clients[topic]
                idle.append(topic)
        if idle:
            # Its handler may be cancelled; what it was the last to want is left all the same.
            leaving = asyncio.get_running_loop().create_task(self._leave_idle(idle))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            await asyncio.shield(leaving)

    async def _leave_idle(self, topics: list[str]) -> None:
        failed = None
        for portion in portions(topics):
            async with self._joining:
                # Somebody may have come while this waited for its turn.
                left = [
                    topic
                    for topic in portion
                    if topic not in self._clients and topic in self._joined
                ]
                try:
                    await self._leave(left)
                except Exception as error:  # noqa: BLE001 - raised once the others are left
                    failed = error
        if failed is not None:
            raise failed

    async def _join(self, topics: list[str]) -> None:
        await all_of(self.layer.group_add(GROUP + topic, self.channel) for topic in topics)
        self._joined.update(topics)
        now_ns = time.time_ns()
        for topic in topics:
            self.history.start(topic, now_ns)

    async def _leave(self, topics: list[str]) -> None:
        # Before anything waits: whoever subscribes from now on finds them missing.
        self._joined.difference_update(topics)
        for topic in topics:
            self.history.stop(topic)
        await all_of(self.layer.group_discard(GROUP + topic, self.channel) for topic in topics)

    async def _renew(self) -> None:
        """Join again before the layer forgets: memberships end after ``group_expiry`` seconds."""
        while True:
            await asyncio.sleep(getattr(self.layer, "group_expiry", 86_400) / 2)
            await self.layer.group_add(HUBS, self.channel)
            for portion in portions(list(self._joined)):
                async with self._joining:
                    await self._join([topic for topic in portion if topic in self._joined])

    async def _watch(self) -> None:
        """Stop where the process stood still for so long that messages to it may have expired.

        With a message, some layers let the memberships of its channel expire, too.
        """
        expiry_s = getattr(self.layer, "expiry", 60)
        while True:
            began = time.monotonic()
            await asyncio.sleep(expiry_s / 4)
            if (stood_s := time.monotonic() - began) > expiry_s:
                reason = f"the process stood still for some {stood_s:.0f} s"
                logger.error("the hub stops: %s", reason)
                self._stop(reason)

    async def _receive(self) -> None:
        receive, channel = self.layer.receive, self.channel
        while True:
            for _ in range(BURST):
                message = await receive(channel)
                if message["type"] == "hub.record":
                    self.hand_out(message["topic"], message["record"])
                else:
                    await self._answer(message)
            await asyncio.sleep(0)

    async def _answer(self, message: dict[str, Any]) -> None:
        if handler := self.handlers.get(message["type"]):
            await handler(message)
        else:
            logger.warning("a hub has no use for a message of type %r", message["type"])

    def hand_out(self, topic: str, record: bytes) -> None:
        """Append ``record`` to the outbox of every client of ``topic``."""
        self.received += 1
        clients = self._clients.get(topic)
        if not clients:
            self.ignored += 1
            if topic in self._joined:
                # It is about to be left, and until then this hub vouches for it.
                self.history.add(topic, enclose(record))
            return
        enclosed = enclose(record)
        self.history.add(topic, enclosed)
        for pending in clients.values():
            pending.append(enclosed)
        self.delivered += len(clients)
        self._dirty.update(clients)
        if not self._round_due:
            self._plan_round()

    def _plan_round(self) -> None:
        self._round_due = True
        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before:
            loop.call_at(self._not_before, self._begin_round)
        else:
            loop.call_soon(self._begin_round)

    def _begin_round(self) -> None:
        self._round_began = asyncio.get_running_loop().time()
        self._round, self._dirty = list(self._dirty), set()
        self._serve()

    def _serve(self) -> None:
        """Wake the tasks of the next few clients, and come back when they have had their turn."""
        for outbox in self._round[-SERVED_AT_ONCE:]:
            self.dropped += outbox.settle()
        del self._round[-SERVED_AT_ONCE:]
        asyncio.get_running_loop().call_soon(self._serve if self._round else self._end_round)

    def _end_round(self) -> None:
        took_s = asyncio.get_running_loop().time() - self._round_began
        self._not_before = self._round_began + min(LONGEST_PERIOD_S, took_s / FLUSH_SHARE)
        self._round_due = False
        if self._dirty:
            self._plan_round()

    async def _pass_barrier(self, message: dict[str, Any]) -> None:
        """Tell a publisher that all it sent before this barrier has left the layer's queue."""
        await self.reply(message, {"type": "hub.passed", "barrier": message["barrier"]})

    async def ask_all(self, question: dict[str, Any]) -> None:
        """Send ``question`` to every hub, this one among them."""
        await self.layer.group_send(HUBS, {**question, "reply_to": self.channel})

    async def reply(self, message: dict[str, Any], answer: dict[str, Any]) -> None:
        """Send ``answer`` to the one who sent ``message``, signed with this hub's channel."""
        try:
            await self.layer.send(message["reply_to"], {**answer, "hub": self.channel})
        except ChannelFull:
            # It does not read its answers, and will take this hub for silent.
            logger.warning("%s is full: an answer was dropped", message["reply_to"])
        except Exception:
            # One that cannot be answered is no reason to stop; a layer that has failed shows at
            # the next receive().
            logger.exception("%r cannot be answered", message["reply_to"])
