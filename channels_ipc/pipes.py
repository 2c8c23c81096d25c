"""What FIFOs can do beyond reading and writing, and what stands in for it outside Linux."""

import array
import ctypes
import errno
import fcntl
import logging
import os
import select
import sys
import termios

logger = logging.getLogger("channels_ipc")

_SET_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)
_GET_SIZE = getattr(fcntl, "F_GETPIPE_SZ", None)
_DEFAULT_SIZE = 65_536
_NONBLOCK = 2  # SPLICE_F_NONBLOCK
_tee = getattr(ctypes.CDLL(None, use_errno=True), "tee", None) if sys.platform == "linux" else None


def make(path: str, root: int) -> None:
    """Make a FIFO for this user only, unless it is there."""
    try:
        os.mkfifo(path, 0o600, dir_fd=root)
    except FileExistsError:
        return


def ask_for_size(fd: int, size: int, what: str) -> int:
    """Make the FIFO hold ``size`` bytes, as far as the system allows; return what it holds."""
    if _SET_SIZE is None or _GET_SIZE is None:
        return _DEFAULT_SIZE
    present = fcntl.fcntl(fd, _GET_SIZE)
    if present >= size:
        return present
    for wanted in _halvings(size, present):
        try:
            present = fcntl.fcntl(fd, _SET_SIZE, wanted)
            break
        except OSError:  # EPERM: above the user's share; EBUSY: it holds more than that
            continue
    if present < size:
        logger.warning(
            "%s holds %d bytes, not %d: see fs.pipe-max-size and fs.pipe-user-pages-soft",
            what,
            present,
            size,
        )
    return present


def _halvings(size: int, above: int) -> list[int]:
    sizes = []
    while size > above:
        sizes.append(size)
        size //= 2
    return sizes


def is_at(fd: int, path: str, root: int) -> bool:
    """Whether ``path`` leads to what ``fd`` is open on."""
    try:
        found = os.stat(path, dir_fd=root, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), found)


def is_read(path: str, root: int) -> bool:
    """Whether a process has the FIFO at ``path`` open for reading: the kernel knows."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK, dir_fd=root)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return False
        raise
    os.close(fd)
    return True


def lock(fd: int, *, shared: bool) -> bool:
    """Lock the FIFO, if nobody else has, until ``fd`` is closed. The kernel unlocks the dead."""
    try:
        fcntl.flock(fd, fcntl.LOCK_NB | (fcntl.LOCK_SH if shared else fcntl.LOCK_EX))
    except BlockingIOError:
        return False
    return True


def unlock(fd: int) -> None:
    fcntl.flock(fd, fcntl.LOCK_UN)


def counter() -> "array.array[int]":
    """Return a place for ``depth`` to count in: making one takes as long as the counting."""
    return array.array("i", (0,))


def depth(fd: int, count: "array.array[int] | None" = None) -> int:
    """Return the number of bytes that wait in the FIFO, by way of ``count``."""
    count = counter() if count is None else count
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


def has_reader(fd: int) -> bool:
    """Whether the FIFO whose writing end is ``fd`` is open for reading anywhere."""
    poll = select.poll()
    poll.register(fd, 0)
    return not any(event & select.POLLERR for _, event in poll.poll(0))


def peek(fd: int, size: int) -> bytes:
    """Return up to ``size`` bytes from the head of the FIFO and leave them there.

    Empty where nothing waits, and where the system cannot (``tee(2)`` is Linux's own).
    """
    if _tee is None:
        return b""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(reading, size) if _tee(fd, writing, size, _NONBLOCK) > 0 else b""
    finally:
        os.close(reading)
        os.close(writing)
