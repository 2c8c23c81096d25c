"""What a subscriber was sent, checked record by record: size, topic and sequence. Pure.

The wire format is that of ``/ws/topics/`` and ``/poll/``: a frame holds records, each behind its
length (u32); a record is timestamp_ns u64, publisher u32, position u64, sequence u64, topic length
u16, topic, body; all big-endian. Sequences count from 1 for each publisher and topic.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Any

from hdrh.histogram import HdrHistogram

from .record import HIGHEST_US, LOWEST_US, SIGNIFICANT_FIGURES

HEADER = Struct(">IQIQQH")
LENGTH_BYTES = 4
SUBSCRIBED = "are subscribed"  # what the log says then, to those who wait to publish
# Latencies are kept in steps of 2^14 ns (16 us): fine enough, and a shift is all it takes.
SHIFT = 14


@dataclass(slots=True)
class Tally:
    """What all subscribers of a process were sent.

    ``lost`` counts holes in front of a record that came: what is missing behind the last one is for
    ``Subscriber.missing`` to say. ``reordered`` are those that came after all, later than their
    successor, and are not lost. ``corrupt`` are records of a wrong size, ``foreign`` those of a
    topic that was not asked for.
    """

    frames: int = 0
    received: int = 0
    size_bytes: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    corrupt: int = 0
    foreign: int = 0
    latencies: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def counts(self) -> dict[str, int]:
        names = ("frames", "received", "size_bytes", "lost", "duplicated", "reordered", "corrupt")
        return {name: getattr(self, name) for name in (*names, "foreign")}

    def latency(self) -> HdrHistogram:
        """Return the latencies from the publisher's clock, in microseconds."""
        histogram = HdrHistogram(LOWEST_US, HIGHEST_US, SIGNIFICANT_FIGURES)
        for step, count in self.latencies.items():
            microseconds = ((step << SHIFT) + (1 << SHIFT >> 1)) // 1000
            histogram.record_value(min(max(microseconds, LOWEST_US), HIGHEST_US), count)
        return histogram


class Layout:
    """The shape of every record of a feed: its size, and topics of one length."""

    def __init__(self, message_bytes: int, topic_bytes: int) -> None:
        self.message_bytes = message_bytes
        self.topic_bytes = topic_bytes
        self.enclosed_bytes = message_bytes + LENGTH_BYTES
        rest = self.enclosed_bytes - HEADER.size - topic_bytes
        if rest < 0:
            raise ValueError(f"{message_bytes} bytes hold no header and topic of {topic_bytes}")
        self.records = Struct(f"{HEADER.format}{topic_bytes}s{rest}x").iter_unpack


class Subscriber:
    """One client: what it is due next on each topic.

    ``since_start`` says that the subscription was live before anything was published, so that the
    first message due on each topic is number 1. A client that comes later takes the first it gets.
    """

    __slots__ = ("_layout", "_missing", "_publishers", "_tally", "due", "first")

    def __init__(
        self, topics: Iterable[bytes], layout: Layout, tally: Tally, *, since_start: bool
    ) -> None:
        self.due = dict.fromkeys(topics, 1 if since_start else 0)  # 0: whatever comes first
        self.first: dict[bytes, int] = {}
        self._layout = layout
        self._tally = tally
        self._missing: set[tuple[bytes, int]] = set()
        self._publishers: dict[bytes, int] = {}

    def take(self, frame: Any, now_ns: int) -> None:
        """Check and count the records in ``frame`` (bytes or a memoryview)."""
        tally, layout = self._tally, self._layout
        size = len(frame)
        tally.frames += 1
        tally.size_bytes += size
        if size % layout.enclosed_bytes:
            tally.corrupt += 1
            return
        tally.received += size // layout.enclosed_bytes
        due, latencies = self.due, tally.latencies
        right, right_topic = layout.message_bytes, layout.topic_bytes
        for length, stamp, publisher, _, sequence, topic_length, topic in layout.records(frame):
            if due.get(topic) == sequence and length == right and topic_length == right_topic:
                due[topic] = sequence + 1
            else:
                self._look_at(length, publisher, sequence, topic_length, topic)
            latencies[(now_ns - stamp) >> SHIFT] += 1

    def _look_at(
        self, length: int, publisher: int, sequence: int, topic_length: int, topic: bytes
    ) -> None:
        """Say what is the matter with a record that is not the one due."""
        layout, tally = self._layout, self._tally
        if length != layout.message_bytes or topic_length != layout.topic_bytes:
            tally.corrupt += 1
            return
        due = self.due.get(topic)
        if due is None:
            tally.foreign += 1
            return
        before = self._publishers.setdefault(topic, publisher)
        if due == 0 or publisher != before:
            # The first one of a client that came later, or of a publisher that started anew.
            self._publishers[topic] = publisher
            self.first[topic] = sequence
        elif sequence > due:
            tally.lost += sequence - due
            self._missing.update((topic, number) for number in range(due, sequence))
        elif (topic, sequence) in self._missing:
            self._missing.discard((topic, sequence))
            tally.reordered += 1
            tally.lost -= 1
            return
        else:
            tally.duplicated += 1
            return
        self.due[topic] = sequence + 1

    def late(self) -> int:
        """Return how many messages its topics had before the first it got, of one that came later.

        Zero unless something was lost, where nothing had been published when it subscribed.
        """
        return sum(number - 1 for number in self.first.values())

    def reached(self) -> int:
        """Return the sequence of the last record that came of each of its topics, in all."""
        return sum(max(0, due - 1) for due in self.due.values())

    def missing(self, published: Mapping[bytes, int]) -> int:
        """Return how many of the ``published`` messages of its topics never came, at the end.

        For a client that was there since the start; holes that are in ``lost`` are left out.
        """
        return sum(max(0, published[topic] + 1 - due) for topic, due in self.due.items())
