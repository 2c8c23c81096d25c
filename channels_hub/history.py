"""What a process remembers of its topics, for clients that come back."""

import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from channels_hub.records import HEADER, LENGTH

_HEAD_SIZE = LENGTH.size + HEADER.size
MOST_HEADS = 1_000  # runs of publishers whose forgotten records a topic tells apart


class Remembered(NamedTuple):
    timestamp_ns: int
    publisher: int
    position: int
    topic: str
    enclosed: bytes


class History:
    """The newest ``limit_bytes`` of records, and which topics are remembered since when.

    Positions: ``{publisher: position}``, the last place in each publisher's stream that a client
    has seen. A publisher's stream reaches a process in order, so one number tells for all topics.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        # Side by side, and nothing of Python's own around each record: whatever the garbage
        # collector counts has it look through the whole process, again and again. With a thousand
        # clients of a thousand topics that was a tenth of a busy hub's time.
        self._records: deque[bytes] = deque()
        self._topics: deque[str] = deque()
        self._since_ns: dict[str, int] = {}
        # topic -> publisher -> the head of the last of its records that was forgotten
        self._forgotten: dict[str, dict[int, bytes]] = {}

    def start(self, topic: str, now_ns: int) -> None:
        """Note that from ``now_ns`` on every record of ``topic`` is added."""
        self._since_ns.setdefault(topic, now_ns)

    def stop(self, topic: str) -> None:
        """Note that records of ``topic`` are missed from now on."""
        self._since_ns.pop(topic, None)
        self._forgotten.pop(topic, None)

    def started_ns(self, topics: Collection[str]) -> int:
        """Return since when all that is remembered of ``topics`` is; 0 where it is none of them."""
        return max((self._since_ns.get(topic, 0) for topic in topics), default=0)

    def add(self, topic: str, enclosed: bytes) -> None:
        """Remember a record of ``topic``."""
        self._records.append(enclosed)
        self._topics.append(topic)
        self.size_bytes += len(enclosed)
        while self.size_bytes > self.limit_bytes:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        topic, enclosed = self._topics.popleft(), self._records.popleft()
        self.size_bytes -= len(enclosed)
        if topic in self._since_ns:
            _, publisher, _, _, _ = HEADER.unpack_from(enclosed, LENGTH.size)
            heads = self._forgotten.setdefault(topic, {})
            heads[publisher] = enclosed[:_HEAD_SIZE]
            if len(heads) > MOST_HEADS:
                # Whoever was there before now, or before one of them, is no longer vouched for:
                # publishers' clocks may be ahead of this one, and behind.
                stamps = [remembered(topic, head).timestamp_ns + 1 for head in heads.values()]
                self._since_ns[topic] = max(time.time_ns(), *stamps)
                del self._forgotten[topic]

    def after(
        self, topics: Collection[str], positions: Mapping[int, int], since_ns: int
    ) -> list[Remembered]:
        """Return what ``topics`` got after ``positions``, in the order it came.

        Of a publisher that ``positions`` does not name, what it published from ``since_ns`` on.
        """
        wanted = frozenset(topics)
        about = (
            remembered(topic, enclosed)
            for topic, enclosed in zip(self._topics, self._records, strict=True)
            if topic in wanted
        )
        return [record for record in about if is_newer(record, positions, since_ns)]

    def covers(self, topic: str, positions: Mapping[int, int], since_ns: int) -> bool:
        """Whether ``after`` gives everything that ``topic`` got after ``positions``."""
        started_ns = self._since_ns.get(topic)
        if started_ns is None or started_ns > since_ns:
            return False
        return not any(
            is_newer(remembered(topic, head), positions, since_ns)
            for head in self._forgotten.get(topic, {}).values()
        )

    def covered(
        self, topics: Collection[str], positions: Mapping[int, int], since_ns: int
    ) -> set[str]:
        """Return those of ``topics`` that this ``covers``."""
        return {topic for topic in topics if self.covers(topic, positions, since_ns)}


def remembered(topic: str, enclosed: bytes) -> Remembered:
    timestamp_ns, publisher, position, _, _ = HEADER.unpack_from(enclosed, LENGTH.size)
    return Remembered(timestamp_ns, publisher, position, topic, enclosed)


def is_newer(record: Remembered, positions: Mapping[int, int], since_ns: int) -> bool:
    """Whether a client at ``positions``, there since ``since_ns``, has yet to see ``record``."""
    seen = positions.get(record.publisher)
    return record.timestamp_ns >= since_ns if seen is None else record.position > seen


def newest(
    records: Sequence[Remembered], limit_bytes: int
) -> tuple[Sequence[Remembered], frozenset[str]]:
    """Return the last of ``records`` that ``limit_bytes`` hold, and the topics of the others."""
    size_bytes = 0
    for at in range(len(records) - 1, -1, -1):
        size_bytes += len(records[at].enclosed)
        if size_bytes > limit_bytes:
            return records[at + 1 :], frozenset(record.topic for record in records[: at + 1])
    return records, frozenset()
