"""Frames: one message as it stands in a FIFO. Bytes in, values out; nothing here does I/O.

A frame is a prefix (magic, length, checksum) and a body (kind, flags, generation, deadline, the
lengths of name and extra, then name, extra and payload). All numbers are little-endian. A frame
of at most ``FRAME_LIMIT`` bytes is written by one ``write(2)``, which POSIX makes atomic for
pipes, so that writers need no lock. The checksum is there to find the next frame again after
somebody wrote nonsense.
"""

import select
from struct import Struct
from typing import NamedTuple
from zlib import crc32

FRAME_LIMIT = min(4096, select.PIPE_BUF)  # 4,096 on Linux, 512 on macOS

MESSAGE = 1  # name: the channel
GROUP = 2  # name: the group, for every member that the receiving process has
MEMBER = 3  # name: the channel, extra: the group; for a member that another process added
DISCARD = 4  # name: the channel, extra: the group
PARKED = 5  # no message: there are messages in the channel's parking
KINDS = frozenset((MESSAGE, GROUP, MEMBER, DISCARD, PARKED))

SPOOLED = 1  # flag: the payload is the name of the file that holds the payload

MAGIC = b"\xc4IPC"
_MAGIC = int.from_bytes(MAGIC, "little")
_PREFIX = Struct("<III")
_BODY = Struct("<BBIdHH")
HEADER_SIZE = _PREFIX.size + _BODY.size
_LENGTH_LIMIT = 1 << 30


class Frame(NamedTuple):
    """One decoded frame. ``deadline`` is on the monotonic clock, in seconds."""

    kind: int
    flags: int
    generation: int
    deadline: float
    name: str
    extra: str
    payload: bytes


def encode(
    kind: int,
    generation: int,
    deadline: float,
    name: bytes,
    payload: bytes,
    extra: bytes = b"",
    flags: int = 0,
) -> bytes:
    """Return the frame as bytes."""
    head = _BODY.pack(kind, flags, generation, deadline, len(name), len(extra))
    body = b"".join((head, name, extra, payload))
    return _PREFIX.pack(_MAGIC, len(body), crc32(body)) + body


def decode(data: bytes, start: int = 0) -> tuple[Frame, int] | None:
    """Return the frame that begins at ``start`` and the index where it ends.

    ``None`` where no whole, sound frame begins there.
    """
    begin = start + HEADER_SIZE
    if len(data) < begin:
        return None
    magic, length, checksum = _PREFIX.unpack_from(data, start)
    end = start + _PREFIX.size + length
    if magic != _MAGIC or end > len(data) or end < begin:
        return None
    if crc32(data[start + _PREFIX.size : end]) != checksum:
        return None
    kind, flags, generation, deadline, name_size, extra_size = _BODY.unpack_from(
        data, start + _PREFIX.size
    )
    name_end = begin + name_size
    payload_start = name_end + extra_size
    if kind not in KINDS or payload_start > end:
        return None
    try:
        name = data[begin:name_end].decode()
        extra = data[name_end:payload_start].decode() if extra_size else ""
    except UnicodeDecodeError:
        return None
    frame = Frame(kind, flags, generation, deadline, name, extra, data[payload_start:end])
    return frame, end


def is_partial(data: bytes, start: int) -> bool:
    """Whether ``data`` ends inside what may be a sound frame that begins at ``start``."""
    left = len(data) - start
    if left < _PREFIX.size:
        return MAGIC.startswith(data[start : start + len(MAGIC)])
    magic, length, _ = _PREFIX.unpack_from(data, start)
    return bool(magic == _MAGIC and left < _PREFIX.size + length <= FRAME_LIMIT)


def split(data: bytes, *, drained: bool) -> tuple[list[Frame], bytes, int]:
    """Cut ``data``, as read from a mailbox, into frames.

    Returns the frames, the beginning of a frame at the end of ``data`` (whose rest is still in
    the mailbox) and the number of stretches that were no frames and were skipped. ``drained``
    says that nothing was left in the mailbox: a frame cut short is a bad one then.
    """
    frames: list[Frame] = []
    skipped = 0
    at = 0
    while at < len(data):
        found = decode(data, at)
        if found is not None:
            frames.append(found[0])
            at = found[1]
        elif not drained and is_partial(data, at):
            return frames, data[at:], skipped
        else:
            skipped += 1
            at = _next_start(data, at, drained=drained)
    return frames, b"", skipped


def _next_start(data: bytes, at: int, *, drained: bool) -> int:
    """Return where after ``at`` the next sound frame may begin, the end where none does."""
    while (at := data.find(MAGIC, at + 1)) != -1:
        if decode(data, at) is not None or (not drained and is_partial(data, at)):
            return at
    if not drained:
        for size in range(len(MAGIC) - 1, 0, -1):
            if data.endswith(MAGIC[:size]):
                return len(data) - size
    return len(data)
