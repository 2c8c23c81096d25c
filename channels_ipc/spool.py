"""Payloads too big for a frame: a file each, whose name travels in the frame."""

import errno
import os
import re
import secrets

from channels_ipc.directory import RuntimeDirectory, list_folder

FULL = (errno.ENOSPC, errno.EDQUOT)
_NAME = re.compile(r"([0-9a-f]{8})[0-9a-f]{16}")  # the size of the payload in bytes, and a number


def store(
    directory: RuntimeDirectory, folder: str, data: bytes, files_limit: int, bytes_limit: int
) -> bytes | None:
    """Write ``data`` to a new file in ``folder`` and return its name.

    ``None`` where there is no room: the folder would hold more than one of the limits says, or the
    file system is full.
    """
    names = list_folder(directory.root, folder)
    held = sum(int(name[:8], 16) for name in names if _NAME.fullmatch(name))
    if len(names) >= files_limit or held + len(data) > bytes_limit:
        return None
    name = f"{len(data):08x}{secrets.token_hex(8)}"
    try:
        write_new(directory, f"{folder}/{name}", data)
    except OSError as error:
        if error.errno in FULL:
            return None
        raise
    return name.encode()


def write_new(directory: RuntimeDirectory, path: str, data: bytes) -> None:
    """Write a new file, whole or not at all."""
    fd = directory.create(path)
    try:
        write_whole(fd, data)
    except OSError:
        os.unlink(path, dir_fd=directory.root)
        raise
    finally:
        os.close(fd)


def fetch(directory: RuntimeDirectory, folder: str, name: bytes) -> bytes | None:
    """Remove the file and return what it held; ``None`` where there is no such file."""
    text = name.decode("ascii", "replace")
    if not _NAME.fullmatch(text):
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
    if _NAME.fullmatch(text):
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
