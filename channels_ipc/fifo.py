"""A FIFO of fixed-size records that several processes read: the kernel gives each to one of them.

Records have one size, so that the bytes that wait are an exact count.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator

from channels_ipc import pipes, wire
from channels_ipc.directory import RuntimeDirectory
from channels_ipc.tally import Tally

RECORD_SIZE = min(1024, wire.FRAME_LIMIT)  # written at once, as every frame
_PATIENCE = 1000  # tries, each of a microsecond or a turn of another process
_UNREAD = (errno.ENXIO, errno.ENOENT)  # no process reads it; it was just removed for that

IsDue = Callable[[wire.Frame], bool]


class Fifo:
    """One process's ends of the FIFO: none, the writing end, or both.

    Senders hold the writing end only, and so learn from the kernel when nobody reads any more.
    """

    def __init__(self, directory: RuntimeDirectory, file: str, malformed: Tally) -> None:
        self.reads = False
        self._root = directory.root
        self._path = f"q/{file}"
        self._shown = f"{directory.path}/{self._path}"
        self._malformed = malformed
        self._fd = -1
        self._count = pipes.counter()

    @property
    def fd(self) -> int:
        return self._fd

    def connect(self, *, make: bool = True) -> bool:
        """Open the writing end if it is not open; ``False`` where no process reads."""
        if self._fd >= 0:
            return True
        if make:
            pipes.make(self._path, self._root)
        try:
            self._fd = self._open(os.O_WRONLY)
        except OSError as error:
            if error.errno not in _UNREAD:
                raise
        return self._fd >= 0

    def read_from_now_on(self, size: int) -> None:
        """Open both ends, and make room for ``size`` bytes."""
        fd = self._open_for_reading()
        self.close()
        self._fd = fd
        self.reads = True
        pipes.ask_for_size(fd, size, self._shown)

    def _open_for_reading(self) -> int:
        """Open both ends, of the FIFO that others find: an unread one may just be removed."""
        while True:
            pipes.make(self._path, self._root)
            with contextlib.suppress(FileNotFoundError):
                fd = self._open(os.O_RDWR)
                if pipes.is_at(fd, self._path, self._root):
                    return fd
                os.close(fd)

    def _open(self, mode: int) -> int:
        return os.open(self._path, mode | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=self._root)

    def depth(self) -> int:
        """Return the number of records that wait. Not for several threads at once."""
        return pipes.depth(self._fd, self._count) // RECORD_SIZE

    def write(self, frame: bytes) -> bool:
        """Write one record; ``False`` where it does not fit. Raises ``BrokenPipeError``."""
        try:
            os.write(self._fd, frame.ljust(RECORD_SIZE, b"\0"))
        except BlockingIOError:
            return False
        return True

    def read(self) -> wire.Frame | None:
        """Remove and return the oldest sound record, ``None`` where none waits."""
        try:
            record = os.read(self._fd, RECORD_SIZE)
        except BlockingIOError:
            return None
        decoded = wire.decode(record)
        if decoded is not None:
            return decoded[0]
        found = self._first_sound(self._fd, record)
        return None if found is None else found[1]

    def drain(self) -> Iterator[tuple[bytes, wire.Frame]]:
        """Remove and yield all records, through a reading end of its own."""
        fd = self._open(os.O_RDONLY)
        try:
            while (found := self._read_record(fd)) is not None:
                yield found
        finally:
            os.close(fd)

    def purge(self, is_due: IsDue, limit: int) -> Iterator[tuple[bytes, wire.Frame]]:
        """Remove and yield records that are due no more from the head, until fewer than ``limit``.

        Between the look at the head and the reading a receiver may have taken it: what is yielded
        then is a record that is due, for the caller to park with all that is behind it.
        """
        fd = self._open_for_reading()
        try:
            if not pipes.lock(fd, shared=False):
                return  # another process is at it
            while pipes.depth(fd) >= limit * RECORD_SIZE:
                head = wire.decode(pipes.peek(fd, RECORD_SIZE))
                if head is None or is_due(head[0]):
                    return
                found = self._read_record(fd)
                if found is not None:
                    yield found
        finally:
            os.close(fd)

    def _read_record(self, fd: int) -> tuple[bytes, wire.Frame] | None:
        return self._first_sound(fd, _read(fd, RECORD_SIZE))

    def _first_sound(self, fd: int, record: bytes) -> tuple[bytes, wire.Frame] | None:
        """Return ``record``, or the first sound one after it, with what it holds."""
        while record:
            found = wire.decode(record)
            if found is not None:
                return record[: found[1]], found[0]
            # Somebody wrote what is no record, and may have pushed the others out of step.
            self._malformed.add(1, f"a record in {self._shown}")
            start = wire.find_start(record, 1)
            record = record[start:] + _read(fd, start)
        return None

    def wait_for_purge(self) -> None:
        """Give whoever purges the FIFO a moment to finish: see ``purge``.

        Not longer: that process may be stopped.
        """
        for _ in range(_PATIENCE):
            if pipes.lock(self._fd, shared=True):
                pipes.unlock(self._fd)
                return
            os.sched_yield()

    def has_other_reader(self) -> bool:
        """Give up reading, and say whether any other process reads."""
        if self.reads:
            writing = self._open(os.O_WRONLY)
            self.close()
            self._fd = writing
        return self._fd >= 0 and pipes.has_reader(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self.reads = False


def _read(fd: int, size: int) -> bytes:
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return b""
