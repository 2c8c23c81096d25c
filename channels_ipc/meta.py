"""The file ``meta``: which layout a runtime directory has, and the words all processes share."""

import contextlib
import mmap
import os
import secrets
from struct import Struct

_META = Struct("<8sIII")  # magic, version of the layout, generation, the notes' word
_MAGIC = b"chan-ipc"
_VERSION = 3
_WORDS = 3  # 32-bit words before the shared ones
_NAME = "meta"


def is_outdated(folder: int) -> bool:
    """Whether another version of the package made the directory that ``folder`` is open on."""
    try:
        fd = _open(folder)
    except FileNotFoundError:
        return False  # it is being made
    try:
        return not _is_current(fd)
    finally:
        os.close(fd)


def shared_words(folder: int) -> memoryview | None:
    """Return the generation and the notes' word, in shared memory; ``None`` of another version."""
    try:
        fd = _open(folder)
    except FileNotFoundError:
        _create(folder)
        fd = _open(folder)
    try:
        return memoryview(mmap.mmap(fd, _META.size)).cast("I")[_WORDS:] if _is_current(fd) else None
    finally:
        os.close(fd)


def _open(folder: int) -> int:
    return os.open(_NAME, os.O_RDWR | os.O_NOFOLLOW, dir_fd=folder)


def _is_current(fd: int) -> bool:
    data = os.pread(fd, _META.size, 0)
    return len(data) == _META.size and _META.unpack(data)[:2] == (_MAGIC, _VERSION)


def _create(folder: int) -> None:
    """Write the file under another name and link it: it is never seen unfinished."""
    partial = f".{_NAME}-{secrets.token_hex(8)}"
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    try:
        os.write(fd, _META.pack(_MAGIC, _VERSION, secrets.randbits(32), 0))
        with contextlib.suppress(FileExistsError):
            os.link(partial, _NAME, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(fd)
        os.unlink(partial, dir_fd=folder)
