"""Clearing away the directory of another version of the package, once no process uses it."""

import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator

from channels_ipc import meta, pipes

_PATIENCE = 1000  # tries, each of a millisecond, to be the one process that clears away


def retire(base: int, name: str) -> bool:
    """Remove the directory ``name`` in ``base`` if it is outdated; ``False`` where it is in use.

    One process at a time: whoever comes second finds a new directory, and leaves it alone. The
    lock is only ever asked for here, and the kernel takes it from a process that dies.
    """
    lock = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=base)
    try:
        if not _locked(lock):
            return False
        return _retire(base, name)
    finally:
        os.close(lock)


def _locked(fd: int) -> bool:
    for _ in range(_PATIENCE):
        if pipes.lock(fd, shared=False):
            return True
        time.sleep(0.001)
    return False


def _retire(base: int, name: str) -> bool:
    try:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=base)
    except FileNotFoundError:
        return True  # another process has just cleared it away
    try:
        if not meta.is_outdated(folder):
            return True
        if any(pipes.is_read(fifo, folder) for fifo in _fifos(folder)):
            return False
    finally:
        os.close(folder)
    aside = f".outdated-{secrets.token_hex(8)}"
    os.rename(name, aside, src_dir_fd=base, dst_dir_fd=base)
    shutil.rmtree(aside, ignore_errors=True, dir_fd=base)
    return True


def _fifos(folder: int) -> Iterator[str]:
    """Yield every FIFO below ``folder``, wherever that version kept them."""
    for path, _, files, fd in os.fwalk(".", dir_fd=folder):
        for file in files:
            if stat.S_ISFIFO(os.stat(file, dir_fd=fd, follow_symlinks=False).st_mode):
                yield f"{path}/{file}"
