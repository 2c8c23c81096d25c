"""The relay, at the worker: what ``python manage.py runworker relay`` runs.

The worker is to the channel layer what a WSGI server is to a socket: it takes requests off it,
runs Django's own handler, and puts the replies back. Django runs in one thread of its own, because
database access and most middleware are sync; what comes in meanwhile waits in a queue, and the
thread goes from one request to the next without asking the event loop.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from queue import SimpleQueue
from typing import Any

from channels.exceptions import ChannelFull, MessageTooLarge
from channels.layers import get_channel_layer
from django.core.wsgi import get_wsgi_application

from testproject import http_message

logger = logging.getLogger(__name__)

# Replies leave when a message's requests are done, or after this long: a slow view must not hold
# back the replies of those before it.
SLICE_S = 0.002
# A server that is full now has room again in a moment, unless it is stuck: replies to it are
# offered again this often, beside those to other servers, and only so many messages are kept.
OFFERS = 50
OFFER_S = 0.02
LATE_MAX = 100
# How many recent messages are remembered, to know one that the layer delivers again.
REMEMBERED = 1_000

Reply = tuple[int, Any]  # number, content

# Made at the first request: a server imports this module too, for the routing.
django_application = cache(get_wsgi_application)


def run_django(message: dict[str, Any]) -> dict[str, Any]:
    return http_message.run(django_application(), message)


def echo(content: str | bytes) -> str | bytes:
    return content


HANDLERS: dict[str, Callable[[Any], Any]] = {"http": run_django, "echo": echo}


async def relay_worker(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An ASGI application for the channel ``relay``; ``runworker`` keeps one instance of it."""
    await Worker(get_channel_layer()).serve(receive)


class Worker:
    """Takes messages of requests, and sends each back as one or more messages of replies."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._todo: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._done: asyncio.Queue[tuple[str, list[Reply]]] = asyncio.Queue()
        self._seen: dict[tuple[str, int], None] = {}  # in order, the oldest first
        self._late: set[asyncio.Task[None]] = set()

    async def serve(self, receive: Callable[[], Any]) -> None:
        """Serve what ``receive`` returns, until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.to_thread(self._work, loop))
                group.create_task(self._send_replies())
                while True:
                    message = await receive()
                    if self._is_new(message):
                        self._todo.put(message)
        finally:
            self._todo.put(None)  # the thread cannot be cancelled
            for task in self._late:
                task.cancel()

    def _is_new(self, message: dict[str, Any]) -> bool:
        """Whether the layer delivers ``message`` for the first time."""
        mark = message["reply_to"], message["requests"][0][0]
        if mark in self._seen:
            return False
        self._seen[mark] = None
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return True

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the requests, one after the other, in this thread."""
        while (message := self._todo.get()) is not None:
            for replies in answered(message):
                loop.call_soon_threadsafe(self._done.put_nowait, (message["reply_to"], replies))

    async def _send_replies(self) -> None:
        while True:
            await self._reply(*await self._done.get())

    async def _reply(self, reply_to: str, replies: list[Reply]) -> None:
        message = {"type": "relay.replies", "worker_pid": os.getpid(), "replies": replies}
        try:
            await self._layer.send(reply_to, message)
        except MessageTooLarge:
            await self._reply_apart(reply_to, replies)
        except ChannelFull:
            if len(self._late) < LATE_MAX:
                task = asyncio.create_task(self._offer_again(reply_to, message))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
            else:
                drop(replies)

    async def _offer_again(self, reply_to: str, message: dict[str, Any]) -> None:
        for _ in range(OFFERS):
            await asyncio.sleep(OFFER_S)
            with contextlib.suppress(ChannelFull):
                await self._layer.send(reply_to, message)
                return
        drop(message["replies"])

    async def _reply_apart(self, reply_to: str, replies: list[Reply]) -> None:
        """Send what was too large as one message in one message each, or say that it is."""
        if len(replies) > 1:
            for reply in replies:
                await self._reply(reply_to, [reply])
        else:
            logger.error("A reply is too large for the channel layer")
            await self._reply(reply_to, [(replies[0][0], None)])


def drop(replies: list[Reply]) -> None:
    logger.warning("%d replies dropped: the server does not take them", len(replies))


def answered(message: dict[str, Any]) -> Iterator[list[Reply]]:
    """Run the requests in ``message``; yield their replies, after every slice of time.

    A request that nobody waits for any more is not run.
    """
    replies: list[Reply] = []
    until = time.perf_counter() + SLICE_S
    for number, kind, content in message["requests"]:
        if time.time() > message["expires_at"]:
            logger.warning("A request came too late and was not run")
            continue
        replies.append((number, answer(kind, content)))
        if time.perf_counter() > until:
            yield replies
            replies, until = [], time.perf_counter() + SLICE_S
    if replies:
        yield replies


def answer(kind: str, content: Any) -> Any:
    """Return the reply's content; ``None`` where there is none, and the log says why."""
    try:
        return HANDLERS[kind](content)
    except Exception:
        logger.exception("A relayed request of kind %r failed", kind)
        return None
