"""The relay, at the worker: what ``python manage.py runworker relay`` runs.

The worker is to the channel layer what a WSGI server is to a socket: it takes requests off it,
runs Django's own handler, and puts the replies back.
"""

import asyncio
import logging
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from channels.consumer import AsyncConsumer
from channels.exceptions import ChannelFull, MessageTooLarge
from channels.layers import get_channel_layer
from django.core.wsgi import get_wsgi_application

from testproject import http_message

logger = logging.getLogger(__name__)

# Replies leave when the requests of a burst are done, or after this long: a slow view must not
# hold back the replies of those before it.
SLICE_S = 0.002
# How many recent messages are remembered, to know one that the layer delivers again.
REMEMBERED = 1_000

# Made at the first request: a server imports this module too, for the routing.
django_application = cache(get_wsgi_application)


def run_django(message: dict[str, Any]) -> dict[str, Any]:
    return http_message.run(django_application(), message)


def echo(content: str | bytes) -> str | bytes:
    return content


HANDLERS: dict[str, Callable[[Any], Any]] = {"http": run_django, "echo": echo}


Reply = tuple[int, Any]  # number, content


class Job(NamedTuple):
    """One request, as it waits for the thread that runs Django."""

    reply_to: str
    expires_at: float  # seconds since the epoch: other machines' clocks count too
    number: int
    kind: str
    content: Any


class RelayWorker(AsyncConsumer):
    """Takes requests as they come, and runs what has gathered in one go, in Django's thread.

    ``runworker`` keeps one instance for the channel. A hop to the thread and back costs as much
    as a small view, so it is made once for all the requests at hand.
    """

    # Not a configured alias: the consumer listens to the worker's channel only, not to its own.
    channel_layer_alias = "none"

    def __init__(self) -> None:
        self.layer = get_channel_layer()
        self.jobs: deque[Job] = deque()
        self.seen: dict[tuple[str, int], None] = {}  # in order, the oldest first
        self.runner: asyncio.Task[None] | None = None

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Take a message. Database connections are left to Django's handler, in its thread."""
        if self.is_new(message):
            head = message["reply_to"], message["expires_at"]
            self.jobs.extend(Job(*head, *request) for request in message["requests"])
        if self.runner is None or self.runner.done():
            self.runner = asyncio.create_task(self.run())

    def is_new(self, message: dict[str, Any]) -> bool:
        """Whether the layer delivers ``message`` for the first time."""
        mark = message["reply_to"], message["requests"][0][0]
        if mark in self.seen:
            return False
        self.seen[mark] = None
        if len(self.seen) > REMEMBERED:
            del self.seen[next(iter(self.seen))]
        return True

    async def run(self) -> None:
        """Run the jobs at hand, and those that come in meanwhile, until there are none."""
        while self.jobs:
            for reply_to, replies in (await sync_to_async(work)(self.jobs)).items():
                await self.reply(reply_to, replies)

    async def reply(self, reply_to: str, replies: list[Reply]) -> None:
        message = {"type": "relay.replies", "worker_pid": os.getpid(), "replies": replies}
        try:
            await self.layer.send(reply_to, message)
        except MessageTooLarge:
            await self.reply_apart(reply_to, replies)
        except ChannelFull:
            logger.warning("%d replies dropped: the server does not take them", len(replies))

    async def reply_apart(self, reply_to: str, replies: list[Reply]) -> None:
        """Send what was too large as one message in one message each, or say that it is."""
        if len(replies) == 1:
            logger.error("A reply is too large for the channel layer")
            replies = [(replies[0][0], None)]
            await self.reply(reply_to, replies)
        else:
            for one in replies:
                await self.reply(reply_to, [one])


def work(jobs: deque[Job]) -> dict[str, list[Reply]]:
    """Take jobs off the left for about a slice of time; return the replies by reply channel.

    A request that nobody waits for any more is not run.
    """
    replies = defaultdict(list)
    expired = 0
    until = time.perf_counter() + SLICE_S
    while jobs and (not replies or time.perf_counter() < until):
        job = jobs.popleft()
        if job.expires_at < time.time():
            expired += 1
        else:
            replies[job.reply_to].append((job.number, answer(job)))
    if expired:
        logger.warning("%d requests came too late and were not run", expired)
    return replies


def answer(job: Job) -> Any:
    """Return the reply's content; ``None`` where there is none, and the log says why."""
    try:
        return HANDLERS[job.kind](job.content)
    except Exception:
        logger.exception("A relayed request of kind %r failed", job.kind)
        return None
