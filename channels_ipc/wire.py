"""Frames: one message as it stands in a FIFO. Bytes in, values out; nothing here does I/O.

A frame is a header (magic, size, generation, deadline, kind, flags, the sizes of name and extra),
then name, extra, payload and an end mark. All numbers are little-endian. A frame of at most
``FRAME_LIMIT`` bytes is written by one ``write(2)``, which POSIX makes atomic for pipes, so that
writers need no lock and no frame is ever torn. The two marks are there to find the next frame
again after somebody wrote nonsense; a checksum would cost some percent of a round trip, and
find nothing but what a program with this user's rights forged on purpose.
"""

import select
from struct import Struct
from typing import NamedTuple

FRAME_LIMIT = min(4096, select.PIPE_BUF)  # 4,096 on Linux, 512 on macOS

MESSAGE = 1  # name: the channel
GROUP = 2  # name: the group, for every member that the receiving process has
MEMBER = 3  # name: the channel, extra: the group; for a member that another process added
DISCARD = 4  # name: the channel, extra: the group
PARKED = 5  # no message: there are messages in the channel's parking
HOLD = 6  # name: a named channel, which the receiving process should keep open
KINDS = frozenset((MESSAGE, GROUP, MEMBER, DISCARD, PARKED, HOLD))

SPOOLED = 1  # flag: the payload is the name of the file that holds the payload

LATEST_S = 1e10  # every real deadline is before it; nonsense may be later, endless or no number

MAGIC = b"\xc4IPC"
END = b"\xc4END"
_END_SIZE = len(END)
_BEGIN = Struct("<4sIId")  # magic, size of the frame, generation, deadline
_ADDRESS = Struct("<BBHH")  # kind, flags, the sizes of name and extra
_HEADER = Struct(_BEGIN.format + _ADDRESS.format[1:])
HEADER_SIZE = _HEADER.size
_AROUND_SIZE = _BEGIN.size + _END_SIZE
_pack_begin = _BEGIN.pack
_unpack_header = _HEADER.unpack_from
_make = tuple.__new__


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
    return encode_to(address(kind, name, extra, flags), generation, deadline, payload)


def address(kind: int, name: bytes, extra: bytes = b"", flags: int = 0) -> bytes:
    """Return the part of a frame that all messages to one place have in common."""
    return _ADDRESS.pack(kind, flags, len(name), len(extra)) + name + extra


def encode_to(address: bytes, generation: int, deadline: float, payload: bytes) -> bytes:
    """Return the frame to ``address`` as bytes."""
    size = _AROUND_SIZE + len(address) + len(payload)
    return _pack_begin(MAGIC, size, generation, deadline) + address + payload + END


def decode(data: bytes, start: int = 0) -> tuple[Frame, int] | None:
    """Return the frame that begins at ``start`` and the index where it ends.

    ``None`` where no whole, sound frame begins there.
    """
    begin = start + HEADER_SIZE
    if len(data) < begin:
        return None
    magic, size, generation, deadline, kind, flags, name_size, extra_size = _unpack_header(
        data, start
    )
    name_end = begin + name_size
    payload_start = name_end + extra_size
    payload_end = start + size - _END_SIZE
    if magic != MAGIC or payload_start > payload_end or kind not in KINDS:
        return None
    if not deadline < LATEST_S:
        return None
    if not data.startswith(END, payload_end):
        return None
    try:
        name = data[begin:name_end].decode()
        extra = data[name_end:payload_start].decode() if extra_size else ""
    except UnicodeDecodeError:
        return None
    payload = data[payload_start:payload_end]
    frame = (kind, flags, generation, deadline, name, extra, payload)
    return _make(Frame, frame), start + size  # a third of the time that Frame(...) takes


def is_partial(data: bytes, start: int) -> bool:
    """Whether ``data`` ends inside what may be a sound frame that begins at ``start``."""
    left = len(data) - start
    if left < HEADER_SIZE:
        return MAGIC.startswith(data[start : start + len(MAGIC)])
    magic, size, *_ = _unpack_header(data, start)
    return bool(magic == MAGIC and left < size <= FRAME_LIMIT)


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
    while (at := find_start(data, at + 1)) < len(data):
        if decode(data, at) is not None or (not drained and is_partial(data, at)):
            return at
    return len(data)


def find_start(data: bytes, start: int) -> int:
    """Return the index of the next magic, or of what may be its beginning at the end of ``data``.

    The length of ``data`` where there is neither.
    """
    at = data.find(MAGIC, start)
    if at >= 0:
        return at
    for size in range(len(MAGIC) - 1, 0, -1):
        if len(data) - size >= start and data.endswith(MAGIC[:size]):
            return len(data) - size
    return len(data)
