"""Who belongs to which group: this process's own members, and those it does not own."""

import contextlib
import os
import secrets
import time

from channels_ipc.directory import Listing, RuntimeDirectory, list_folder
from channels_ipc.limits import SWEEP_S
from channels_ipc.names import file_name
from channels_ipc.spool import write_new


class Memberships:
    """The groups of this process's own channels. Times are on the monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._members: dict[str, dict[str, float]] = {}
        self._groups: dict[str, set[str]] = {}

    def add(self, group: str, channel: str, until: float) -> None:
        self._members.setdefault(group, {})[channel] = until
        self._groups.setdefault(channel, set()).add(group)

    def discard(self, group: str, channel: str) -> None:
        members = self._members.get(group, {})
        members.pop(channel, None)
        if not members:
            self._members.pop(group, None)
        groups = self._groups.get(channel, set())
        groups.discard(group)
        if not groups:
            self._groups.pop(channel, None)

    def members(self, group: str) -> dict[str, float]:
        """Return channel -> the end of its membership. Not to be changed."""
        return self._members.get(group, {})

    def groups_of(self, channel: str) -> tuple[str, ...]:
        return tuple(self._groups.get(channel, ()))

    def groups(self) -> tuple[str, ...]:
        return tuple(self._members)

    def ended(self, now: float) -> list[tuple[str, str]]:
        """Return the group and the channel of each membership whose time is over."""
        return [
            (group, channel)
            for group, members in self._members.items()
            for channel, until in members.items()
            if until <= now
        ]


class Markers:
    """Members that other processes look after, as files: ``g/<group>/<channel>``.

    A named channel belongs to no process, and a process-local one may be added to a group by a
    process that cannot write its owner's status page. The file holds the channel's name; its
    modification time is the end of the membership, on the wall clock.
    """

    def __init__(self, directory: RuntimeDirectory) -> None:
        self._directory = directory
        self._groups = Listing(directory.root, "g")
        self._listings: dict[str, Listing] = {}
        self._members: dict[str, tuple[tuple[str, ...], dict[str, float]]] = {}
        self._sweep_at = 0.0

    def add(self, group: str, channel: str, until: float) -> None:
        """Write the marker under another name first: its time is right from the first moment."""
        folder = f"g/{file_name(group)}"
        root = self._directory.root
        partial = f"{folder}/.{secrets.token_hex(8)}"
        write_new(self._directory, partial, channel.encode())
        os.utime(partial, (until, until), dir_fd=root)
        os.rename(partial, f"{folder}/{file_name(channel)}", src_dir_fd=root, dst_dir_fd=root)

    def discard(self, group: str, channel: str) -> None:
        if file_name(group) in self._groups.names():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"g/{file_name(group)}/{file_name(channel)}", dir_fd=self._directory.root)

    def discard_everywhere(self, channel: str) -> None:
        """End every membership of ``channel``."""
        for group in self._groups.names():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"g/{group}/{file_name(channel)}", dir_fd=self._directory.root)

    def members(self, group: str) -> list[str]:
        """Return the channels whose membership lasts."""
        now = time.time()
        if self._sweep_at <= now:
            self._sweep(now)
        folder = file_name(group)
        if folder not in self._groups.names():
            return []
        return [channel for channel, until in self._read(folder).items() if until > now]

    def clear(self) -> None:
        for group in list_folder(self._directory.root, "g"):
            self._directory.remove_folder(f"g/{group}")

    def _sweep(self, now: float) -> None:
        """Forget the groups that have no members left."""
        self._sweep_at = now + SWEEP_S
        present = frozenset(self._groups.names())
        for folder in list(self._listings):
            _, members = self._members.get(folder, ((), {}))
            if folder not in present or all(until <= now for until in members.values()):
                self._listings.pop(folder, None)
                self._members.pop(folder, None)

    def _read(self, folder: str) -> dict[str, float]:
        listing = self._listings.setdefault(folder, Listing(self._directory.root, f"g/{folder}"))
        names = listing.names()
        seen, members = self._members.get(folder, ((), {}))
        if names is not seen:
            members = dict(filter(None, (self._read_marker(folder, name) for name in names)))
            self._members[folder] = (names, members)
        return members

    def _read_marker(self, folder: str, name: str) -> tuple[str, float] | None:
        try:
            fd = os.open(
                f"g/{folder}/{name}", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._directory.root
            )
        except FileNotFoundError:
            return None
        try:
            return os.read(fd, 1024).decode(), os.fstat(fd).st_mtime
        finally:
            os.close(fd)
