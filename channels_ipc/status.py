"""The page on which a process tells the others what to send it, and what not.

It lies in shared memory. The owner is its only writer and every store is one aligned machine
word, so that no lock is needed and a reader never sees half a value. Names are hashed: two names
that share a place cost a frame that nobody wants, or a ``ChannelFull`` that was not due.
"""

from zlib import crc32

GROUP_BITS = 32_768
FULL_SLOTS = 4_096
_BITMAP_SIZE = GROUP_BITS // 8
SIZE = _BITMAP_SIZE + FULL_SLOTS * 8


def group_place(group: str) -> tuple[int, int]:
    """Return the byte and the mask of ``group`` in the bitmap."""
    bit = crc32(group.encode()) % GROUP_BITS
    return bit >> 3, 1 << (bit & 7)


def full_slot(channel: str) -> int:
    """Return the place of ``channel`` in the table of full channels."""
    return crc32(channel.encode()) % FULL_SLOTS


class StatusView:
    """What the others read: ``full_until[slot]`` is a time on the monotonic clock, in seconds.

    Until then the channels of that slot take no message; 0.0 means they do.
    """

    def __init__(self, buffer: memoryview) -> None:
        self.groups = buffer[:_BITMAP_SIZE]
        self.full_until = buffer[_BITMAP_SIZE:SIZE].cast("d")

    def wants(self, place: tuple[int, int]) -> bool:
        """Whether the process may have a member of the group at ``place``."""
        return bool(self.groups[place[0]] & place[1])


class Status(StatusView):
    """What the owner writes. It remembers who stands behind each hashed place."""

    def __init__(self, buffer: memoryview) -> None:
        super().__init__(buffer)
        self._groups: dict[tuple[int, int], set[str]] = {}
        self._full: dict[int, dict[str, float]] = {}

    def add_group(self, group: str) -> None:
        place = group_place(group)
        self._groups.setdefault(place, set()).add(group)
        self.groups[place[0]] |= place[1]

    def discard_group(self, group: str) -> None:
        place = group_place(group)
        names = self._groups.get(place, set())
        names.discard(group)
        if not names:
            self._groups.pop(place, None)
            self.groups[place[0]] &= ~place[1]

    def mark_full(self, channel: str, until: float) -> None:
        """Say that ``channel`` takes nothing before ``until``."""
        slot = full_slot(channel)
        self._full.setdefault(slot, {})[channel] = until
        self.full_until[slot] = max(self._full[slot].values())

    def clear_full(self, channel: str) -> None:
        slot = full_slot(channel)
        channels = self._full.get(slot, {})
        channels.pop(channel, None)
        self.full_until[slot] = max(channels.values(), default=0.0)
        if not channels:
            self._full.pop(slot, None)
