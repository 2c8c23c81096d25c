"""What a process remembers of its topics, for clients that come back. Pure."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


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
        # ``Remembered`` as plain tuples: the garbage collector stops looking at one that holds only
        # plain values. At tens of thousands it would stop the process for a while, again and again.
        self._records: deque[tuple[int, int, int, str, bytes]] = deque()
        self._since_ns: dict[str, int] = {}
        # topic -> publisher -> time and position of the last of its records that was forgotten
        self._forgotten: dict[str, dict[int, tuple[int, int]]] = {}

    def start(self, topic: str, now_ns: int) -> None:
        """Note that from ``now_ns`` on every record of ``topic`` is added."""
        self._since_ns.setdefault(topic, now_ns)

    def stop(self, topic: str) -> None:
        """Note that records of ``topic`` are missed from now on."""
        self._since_ns.pop(topic, None)
        self._forgotten.pop(topic, None)

    def add(
        self, timestamp_ns: int, publisher: int, position: int, topic: str, enclosed: bytes
    ) -> None:
        """Remember what a ``Remembered`` would hold."""
        self._records.append((timestamp_ns, publisher, position, topic, enclosed))
        self.size_bytes += len(enclosed)
        while self.size_bytes > self.limit_bytes:
            oldest = Remembered._make(self._records.popleft())
            self.size_bytes -= len(oldest.enclosed)
            if oldest.topic in self._since_ns:
                forgotten = self._forgotten.setdefault(oldest.topic, {})
                forgotten[oldest.publisher] = oldest.timestamp_ns, oldest.position

    def after(
        self, topics: Collection[str], positions: Mapping[int, int], since_ns: int
    ) -> list[Remembered]:
        """Return what ``topics`` got after ``positions``, in the order it came.

        Of a publisher that ``positions`` does not name, what it published from ``since_ns`` on.
        """
        wanted = frozenset(topics)
        about = (Remembered._make(record) for record in self._records if record[3] in wanted)
        return [record for record in about if is_newer(record, positions, since_ns)]

    def covers(self, topic: str, positions: Mapping[int, int], since_ns: int) -> bool:
        """Whether ``after`` gives everything that ``topic`` got after ``positions``."""
        started_ns = self._since_ns.get(topic)
        if started_ns is None or started_ns > since_ns:
            return False
        return not any(
            is_newer(Remembered(timestamp_ns, publisher, position, topic, b""), positions, since_ns)
            for publisher, (timestamp_ns, position) in self._forgotten.get(topic, {}).items()
        )


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
