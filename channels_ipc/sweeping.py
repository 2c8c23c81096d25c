"""Removing what nobody needs any more: what killed processes left, and what was used long ago.

Done by each process as it starts. Whoever removes something makes sure that nobody can be about to
use it, or is found out by whoever is.
"""

import contextlib
import os
import time

from channels_ipc import pipes
from channels_ipc.directory import RuntimeDirectory, list_folder
from channels_ipc.names import NODE

_UNFINISHED_S = 60.0  # what takes longer to be set up was left by a process that died


def sweep(directory: RuntimeDirectory, expiry_s: float) -> None:
    """Remove dead processes, expired memberships, and files and FIFOs of expired messages."""
    _sweep_nodes(directory)
    # The time of a marker is the end of its membership, that of a message's file its beginning.
    _sweep_files(directory, "g", _UNFINISHED_S)
    for folder in ("p", "s"):
        _sweep_files(directory, folder, expiry_s + _UNFINISHED_S)
    for name in list_folder(directory.root, "q", hidden=True):
        if _is_older(directory, f"q/{name}", expiry_s + _UNFINISHED_S):
            _remove_unread(directory, f"q/{name}")


def _sweep_nodes(directory: RuntimeDirectory) -> None:
    for name in list_folder(directory.root, "n", hidden=True):
        if NODE.fullmatch(name):
            if not pipes.is_read(f"n/{name}/mailbox", directory.root):
                directory.bury(name)
        elif _is_older(directory, f"n/{name}", _UNFINISHED_S):
            directory.remove_folder(f"n/{name}")


def _sweep_files(directory: RuntimeDirectory, parent: str, age_s: float) -> None:
    """Remove old files from the folders in ``parent``, and folders that have long been empty."""
    for folder in list_folder(directory.root, parent):
        path = f"{parent}/{folder}"
        for name in list_folder(directory.root, path, hidden=True):
            if _is_older(directory, f"{path}/{name}", age_s):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{path}/{name}", dir_fd=directory.root)
        if _is_older(directory, path, _UNFINISHED_S):
            with contextlib.suppress(OSError):  # not empty, or removed by somebody else
                os.rmdir(path, dir_fd=directory.root)


def _remove_unread(directory: RuntimeDirectory, path: str) -> None:
    """Remove the FIFO at ``path`` unless a process reads from it.

    It is taken out of sight before the second look: a process that opened it before that is seen
    then, and one that opens it later looks again (``Fifo.read_from_now_on``).
    """
    aside = f"q/.{path[2:].lstrip('.')}"
    with contextlib.suppress(FileNotFoundError):
        if pipes.is_read(path, directory.root):
            return
        os.rename(path, aside, src_dir_fd=directory.root, dst_dir_fd=directory.root)
        if pipes.is_read(aside, directory.root):
            os.rename(aside, path, src_dir_fd=directory.root, dst_dir_fd=directory.root)
        else:
            os.unlink(aside, dir_fd=directory.root)


def _is_older(directory: RuntimeDirectory, path: str, age_s: float) -> bool:
    try:
        changed = os.stat(path, dir_fd=directory.root, follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return False
    return time.time() - changed > age_s
