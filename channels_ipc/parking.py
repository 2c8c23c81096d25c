"""Messages to a named channel that no process has open for receiving: a file each.

What waits in a FIFO is gone when the last process that has it open ends. A parked message stays
until a receiver comes, whatever becomes of its sender.
"""

import os
import re
import secrets
from collections.abc import Callable, Iterator

from channels_ipc.directory import RuntimeDirectory, list_folder
from channels_ipc.spool import read_whole, write_new
from channels_ipc.tally import Tally
from channels_ipc.wire import Frame, decode

_NAME = re.compile(r"[0-9]{20}-([0-9a-f]{8})-[0-9a-f]{16}")  # deadline in ns, bytes, a number


class Parking:
    """The parked messages of one named channel, oldest first."""

    def __init__(self, directory: RuntimeDirectory, file: str, malformed: Tally) -> None:
        self._directory = directory
        self._folder = f"p/{file}"
        self._malformed = malformed

    def has_room(self, frame: bytes, files_limit: int, bytes_limit: int) -> bool:
        """Whether both limits let ``frame`` be parked."""
        names = filter(None, map(_NAME.fullmatch, list_folder(self._directory.root, self._folder)))
        sizes = [int(name[1], 16) for name in names]
        return len(sizes) < files_limit and sum(sizes) + len(frame) <= bytes_limit

    def put(self, frame: bytes, deadline: float) -> None:
        """Keep ``frame``. Raises ``OSError`` where there is no room for it.

        Files are taken in the order of their names: messages of one expiry in the order in which
        they were sent, whichever process parks them.
        """
        root = self._directory.root
        name = f"{int(deadline * 1e9):020d}-{len(frame):08x}-{secrets.token_hex(8)}"
        partial = f"{self._folder}/.{name}"
        write_new(self._directory, partial, frame)
        os.rename(partial, f"{self._folder}/{name}", src_dir_fd=root, dst_dir_fd=root)

    def take(self) -> Frame | None:
        """Remove and return the oldest message. Whoever removes its file has it, nobody else."""
        for name in list_folder(self._directory.root, self._folder):
            data = self._claim(f"{self._folder}/{name}")
            if data is None:
                continue
            found = decode(data)
            if found is not None:
                return found[0]
            self._count_damaged()
        return None

    def purge(self, is_due: Callable[[Frame], bool]) -> Iterator[Frame]:
        """Remove and yield what is due no more from among the oldest."""
        for name in list_folder(self._directory.root, self._folder):
            path = f"{self._folder}/{name}"
            data = self._read(path)
            if data is None:
                continue
            found = decode(data)
            if found is not None and is_due(found[0]):
                return
            if self._claim(path) is None:
                continue
            if found is None:
                self._count_damaged()
            else:
                yield found[0]

    def _count_damaged(self) -> None:
        self._malformed.add(1, f"a file in {self._directory.path}/{self._folder}")

    def _claim(self, path: str) -> bytes | None:
        """Read the file and remove it; ``None`` where somebody else has removed it."""
        data = self._read(path)
        try:
            os.unlink(path, dir_fd=self._directory.root)
        except FileNotFoundError:
            return None
        return data

    def _read(self, path: str) -> bytes | None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._directory.root)
        except FileNotFoundError:
            return None
        try:
            return read_whole(fd)
        finally:
            os.close(fd)
