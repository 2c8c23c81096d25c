"""The bytes of a published message, and of the frame that carries many of them. Pure.

A record is a header, the topic and the body::

    timestamp_ns  u64   the publisher's clock when it published; first, as in the Rubris baseline
    publisher     u32   which run of which publisher; a restarted one is another
    position      u64   place in everything that publisher published, from 1
    sequence      u64   place in that publisher's messages to this topic, from 1
    topic length  u16
    topic         UTF-8
    body          the rest

A frame is records one behind another, each behind its length (u32). All integers are big-endian, as
JavaScript's ``DataView`` reads them by default.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error

HEADER = Struct(">QIQQH")
LENGTH = Struct(">I")

# What a group name may hold, less the room that the group's own prefix takes.
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,80}")


class TopicError(ValueError):
    """A name that cannot be a topic's."""


class FrameError(ValueError):
    """Bytes that are no frame, or a frame cut short."""


@dataclass(frozen=True, slots=True)
class Record:
    """One published message. ``position`` and ``sequence`` count from 1."""

    timestamp_ns: int
    publisher: int
    position: int
    sequence: int
    topic: str
    body: bytes


def check_topic(topic: object) -> str:
    """Return ``topic``; raise ``TopicError`` unless it is 1 to 80 of ``A-Z a-z 0-9 . _ -``."""
    if isinstance(topic, str) and TOPIC.fullmatch(topic):
        return topic
    # Of a text its start, and of anything else its kind: it may be nested without end.
    shown = repr(topic[:50]) if isinstance(topic, str) else f"a {type(topic).__name__}"
    raise TopicError(f"{shown} is not a topic: 1 to 80 of A-Z a-z 0-9 . _ - are allowed")


def pack(record: Record) -> bytes:
    """Return the bytes of ``record``."""
    topic = record.topic.encode()
    header = HEADER.pack(
        record.timestamp_ns, record.publisher, record.position, record.sequence, len(topic)
    )
    return header + topic + record.body


def unpack(data: bytes) -> Record:
    """Return the record in ``data``; raise ``FrameError`` where it is cut short."""
    try:
        timestamp_ns, publisher, position, sequence, length = HEADER.unpack_from(data)
    except struct_error as error:
        raise FrameError(f"a record of {len(data)} bytes has no whole header") from error
    end = HEADER.size + length
    if end > len(data):
        raise FrameError(f"a record of {len(data)} bytes ends inside its topic")
    topic = data[HEADER.size : end].decode()
    return Record(timestamp_ns, publisher, position, sequence, topic, data[end:])


def enclose(record: bytes) -> bytes:
    """Return ``record`` behind its length: a frame of one, and a part of a longer one."""
    return LENGTH.pack(len(record)) + record


def split(frame: bytes) -> Iterator[bytes]:
    """Yield the records in ``frame``; raise ``FrameError`` where it is cut short."""
    at, size = 0, len(frame)
    while at < size:
        if at + LENGTH.size > size:
            raise FrameError(f"the frame ends inside a length, at byte {at} of {size}")
        (length,) = LENGTH.unpack_from(frame, at)
        at += LENGTH.size
        if at + length > size:
            raise FrameError(f"the frame ends inside a record, at byte {at} of {size}")
        yield frame[at : at + length]
        at += length


def decode(frame: bytes) -> list[Record]:
    """Return the records in ``frame``."""
    return [unpack(record) for record in split(frame)]


def join(records: Iterable[Record]) -> bytes:
    """Return the frame that carries ``records``."""
    return b"".join(enclose(pack(record)) for record in records)
