"""A feed of numbered messages to numbered topics, for demonstrations, tests and measurements.

Each publisher cycles through its own share of the topics, so each topic's messages are in one
order, and how many a topic got follows from how many its publisher sent.
"""

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings

from channels_hub.hub import dropped_by, hub_layer
from channels_hub.publisher import Publisher
from channels_hub.records import HEADER

MOST_TOPICS = 1_000_000
LONGEST_S = 3_600.0
BREATH_S = 0.001  # how long a paced publisher sleeps when nothing is due


class FeedError(ValueError):
    """A feed that cannot be published; the text names the option and the remedy."""


@dataclass(frozen=True)
class Feed:
    """What is published. ``rate`` is messages/s of all publishers together, None for no limit.

    It ends after ``count`` messages or ``seconds``, whichever is first; None is no limit.
    ``message_bytes`` is the size of a record: header, topic and body.
    """

    topics: int = 1_000
    rate: float | None = None
    message_bytes: int = 1_024
    publishers: int = 1
    count: int | None = None
    seconds: float | None = None
    share: int | None = None  # which publisher this is, from 0; None: all of them

    def __post_init__(self) -> None:
        for name in ("topics", "message_bytes", "publishers", "count"):
            value = getattr(self, name)
            if value is not None and type(value) is not int:
                raise FeedError(f"{name} {value!r}: give a whole number")
        if not 1 <= self.topics <= MOST_TOPICS:
            raise FeedError(f"topics {self.topics}: there are 1 to {MOST_TOPICS}")
        if not 1 <= self.publishers <= min(self.topics, 64):
            raise FeedError(f"publishers {self.publishers}: 1 to 64, and at most one a topic")
        if self.rate is not None and self.rate <= 0:
            raise FeedError(f"rate {self.rate:g}: give messages/s above 0, or none for no limit")
        least = HEADER.size + len(topic(0))
        if not least <= self.message_bytes <= 65_536:
            raise FeedError(f"message_bytes {self.message_bytes}: {least} to 65536 are possible")
        if self.count is not None and self.count < 1:
            raise FeedError(f"count {self.count}: publish 1 message or more")
        if self.seconds is not None and not 0 < self.seconds <= LONGEST_S:
            raise FeedError(f"seconds {self.seconds:g}: above 0, and {LONGEST_S:g} at most")

    def parts(self) -> list["Feed"]:
        """Return each publisher's part of it."""
        n = self.publishers
        counts = [self.count and self.count // n + (i < self.count % n) for i in range(n)]
        rate = self.rate and self.rate / n
        return [replace(self, share=i, count=counts[i], rate=rate) for i in range(n)]

    def own_topics(self) -> list[str]:
        """Return the topics of this part, in the order of their turns."""
        return [topic(number) for number in range(self.share or 0, self.topics, self.publishers)]


def topic(number: int) -> str:
    """Return a topic's name; all are equally long."""
    return f"t{number:06d}"


def feed_layer() -> Any:
    """Return the layer on which the subscribers are, with the room that it has for them.

    In memory each layer is a world of its own. On Redis it is the sender's capacity at which a
    channel is full, and on channels_ipc the sender's that bounds what waits in files.
    """
    return hub_layer() if settings.DELIVERY == "hub" else get_channel_layer()


async def publish(layer: Any, feed: Feed, stop: asyncio.Event) -> dict[str, Any]:
    """Publish all parts of ``feed`` from this process; return the statistics."""
    parts = [publish_part(layer, part, stop) for part in feed.parts() if part.count != 0]
    return statistics(await asyncio.gather(*parts))


def statistics(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what all publishers did, from what each of them did."""
    published = sum(part["published"] for part in parts)
    seconds = max(part["seconds"] for part in parts)
    return {
        "published": published,
        "seconds": seconds,
        "messages_per_s": published / seconds if seconds else None,
        "publishers": parts,
    }


async def publish_part(layer: Any, feed: Feed, stop: asyncio.Event) -> dict[str, Any]:
    """Publish one publisher's part of a feed until it ends or ``stop`` is set."""
    publisher = Publisher(layer, publishers=feed.publishers)
    await publisher.start()
    began, began_cpu_s = time.monotonic(), time.process_time()
    await _cycle(publisher, feed, began, stop)
    seconds = time.monotonic() - began
    cpu_s = time.process_time() - began_cpu_s
    await publisher.close()
    return {
        "publisher": publisher.publisher,
        "share": feed.share or 0,
        "topics": len(feed.own_topics()),
        "published": publisher.position,
        "seconds": seconds,
        "began_monotonic_s": began,
        "cpu_s": cpu_s,
        "waited_s": publisher.waited_s,
        "hubs": len(publisher.hubs),
        "given_up": publisher.given_up,
        "layer_dropped": dropped_by(layer),
    }


async def _cycle(publisher: Publisher, feed: Feed, began: float, stop: asyncio.Event) -> None:
    topics, turn = feed.own_topics(), 0
    body = b"x" * (feed.message_bytes - HEADER.size - len(topics[0]))
    most = float("inf") if feed.count is None else feed.count
    end = began + (LONGEST_S if feed.seconds is None else feed.seconds)
    while publisher.position < most and not stop.is_set() and (now := time.monotonic()) < end:
        # What is late is made up for: the feed keeps its rate whatever held it up.
        due = 64 if feed.rate is None else int((now - began) * feed.rate) - publisher.position + 1
        for _ in range(int(min(due, 64, most - publisher.position))):
            await publisher.publish(topics[turn], body)
            turn = (turn + 1) % len(topics)
        await asyncio.sleep(0 if due >= 1 else BREATH_S)
