"""``manage.py publish``: a feed of messages, from processes of its own."""

import asyncio
import json
import multiprocessing
import os
import signal
from contextlib import suppress
from typing import Any

from channels.layers import InMemoryChannelLayer
from django.core.management.base import BaseCommand, CommandError

from testproject.publishing import Feed, FeedError, feed_layer, publish_part, statistics


class Command(BaseCommand):
    help = (
        "Publish numbered messages to topics t000000, t000001 and so on, each publisher a process "
        "of its own with its own share of them; print the statistics as JSON at the end."
    )
    requires_system_checks = ()

    def add_arguments(self, parser):
        parser.add_argument("--topics", type=int, default=1_000)
        parser.add_argument("--publishers", type=int, default=1, help="How many processes.")
        parser.add_argument("--rate", type=float, help="Messages/s in all; as fast as possible.")
        parser.add_argument(
            "--message-bytes", type=int, default=1_024, help="Header, topic and body; 1024."
        )
        parser.add_argument("--count", type=int, help="End after so many messages.")
        parser.add_argument("--seconds", type=float, help="End after so long.")

    def handle(self, **options):
        names = ("topics", "publishers", "rate", "message_bytes", "count", "seconds")
        try:
            feed = Feed(**{name: options[name] for name in names})
        except FeedError as error:
            raise CommandError(f"--{error}") from error
        if isinstance(feed_layer(), InMemoryChannelLayer):
            raise CommandError(
                "the in-memory layer does not leave its process: POST the feed to the server's "
                "own /publish/ instead"
            )
        self.stdout.write(json.dumps(statistics(in_processes(feed))))


def in_processes(feed: Feed) -> list[dict[str, Any]]:
    """Publish each part in a process of its own; return what each did. Stopping us stops them."""
    # Forked, so that Django is loaded once; a channel layer is first used in the child.
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()
    processes = [
        context.Process(target=run_part, args=(part, said))
        for part in feed.parts()
        if part.count != 0
    ]

    def stop(*_: object) -> None:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)

    for process in processes:
        process.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    for process in processes:
        process.join()
    failed = [process.exitcode for process in processes if process.exitcode]
    if failed:
        raise CommandError(f"{len(failed)} of {len(processes)} publishers failed: {failed}")
    return sorted((said.get() for _ in processes), key=lambda part: part["share"])


def run_part(feed: Feed, said: Any) -> None:
    """Publish one part, until its end or a signal."""
    said.put(run(until_stopped(feed)))


def run(coroutine: Any) -> Any:
    """Run on uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(coroutine)
    return uvloop.run(coroutine)


async def until_stopped(feed: Feed) -> dict[str, Any]:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await publish_part(feed_layer(), feed, stop)
