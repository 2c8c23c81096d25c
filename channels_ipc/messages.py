"""Messages as bytes: msgpack, so that a message is data and never code.

A message travels packed and is unpacked by each receiver, so that changing a message after sending
it, or after receiving it, changes nobody else's.
"""

from functools import partial
from typing import Any

import msgpack

Message = dict[str, Any]

_IMMUTABLE = frozenset((str, bytes, int, float, bool, type(None)))

# Small, because a packer is made for each message: with its usual buffer that takes as long as the
# packing. Not kept: one packer cannot be shared by threads.
_packer = partial(msgpack.Packer, buf_size=1024)


def pack(message: object) -> bytes:
    """Return ``message`` as bytes."""
    return _packer().pack(message)  # type: ignore[no-any-return]


def unpack(data: bytes) -> Message:
    """Return the message in ``data``; raise ``ValueError`` where there is none."""
    try:
        message = msgpack.unpackb(data, strict_map_key=False)
    except TypeError as error:  # a list or a map as a key
        raise ValueError(str(error)) from error
    if type(message) is not dict:
        raise ValueError(f"a message is a dict, not {type(message).__name__}")
    return message


class Shared:
    """One message for several receivers, each of which gets a dict of its own.

    A flat message is unpacked once and then copied, at a tenth of the cost: its values cannot be
    changed, so that sharing them is safe. Any other message is unpacked anew for each receiver.
    """

    __slots__ = ("_data", "_flat")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._flat: Message | None = None

    def copy(self) -> Message:
        """Return a message that nobody else has; raise ``ValueError`` where there is none."""
        if self._flat is not None:
            return self._flat.copy()
        message = unpack(self._data)
        if _IMMUTABLE.issuperset(map(type, message.values())):
            self._flat = message.copy()
        return message


Payload = bytes | Shared
