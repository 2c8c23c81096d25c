"""Payloads too big for a frame: a file each, whose name travels in the frame."""

import errno
import os
import secrets

from channels_ipc.directory import RuntimeDirectory, list_folder
from channels_ipc.names import NODE

_FULL = (errno.ENOSPC, errno.EDQUOT)


def store(root: int, folder: str, data: bytes, limit: int) -> bytes | None:
    """Write ``data`` to a new file in ``folder`` and return its name.

    ``None`` where there is no room: the folder holds ``limit`` files, or the file system is full.
    """
    if len(list_folder(root, folder)) >= limit:
        return None
    name = secrets.token_hex(8)
    path = f"{folder}/{name}"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=root)
    try:
        write_whole(fd, data)
    except OSError as error:
        os.unlink(path, dir_fd=root)
        if error.errno in _FULL:
            return None
        raise
    finally:
        os.close(fd)
    return name.encode()


def fetch(directory: RuntimeDirectory, folder: str, name: bytes) -> bytes | None:
    """Remove the file and return what it held; ``None`` where there is no such file."""
    text = name.decode("ascii", "replace")
    if not NODE.fullmatch(text):
        return None
    path = f"{folder}/{text}"
    try:
        fd = directory.open_received(path)
    except FileNotFoundError:
        return None
    try:
        os.unlink(path, dir_fd=directory.root)
        return read_whole(fd)
    except FileNotFoundError:  # somebody else removed it first: it is theirs
        return None
    finally:
        os.close(fd)
        directory.keep_spare()


def discard(root: int, folder: str, name: bytes) -> None:
    """Remove a file nobody will fetch."""
    text = name.decode("ascii", "replace")
    if NODE.fullmatch(text):
        try:
            os.unlink(f"{folder}/{text}", dir_fd=root)
        except FileNotFoundError:
            return


def write_whole(fd: int, data: bytes) -> None:
    """Write all of ``data``: a nearly full file system takes a part first, and fails then."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def read_whole(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    parts = []
    while size > 0 and (part := os.read(fd, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
