"""What did not fit into a full mailbox and must not be lost: that a channel leaves a group.

A note is a file in the folder of the process it concerns. A word in shared memory changes with
each, so that a process looks for notes only when there may be one.
"""

import os
import secrets
from collections.abc import Iterator

from channels_ipc.directory import RuntimeDirectory, list_folder
from channels_ipc.spool import read_whole

_BEGINNING = "left-"


def leave_note(directory: RuntimeDirectory, node: str, group: str, channel: str) -> None:
    """Tell the process that ``channel`` leaves ``group``; in vain where it has died."""
    folder, name = f"n/{node}", secrets.token_hex(8)
    try:
        fd = os.open(
            f"{folder}/.{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory.root
        )
        try:
            os.write(fd, f"{group}\n{channel}".encode())
        finally:
            os.close(fd)
        os.rename(
            f"{folder}/.{name}",
            f"{folder}/{_BEGINNING}{name}",
            src_dir_fd=directory.root,
            dst_dir_fd=directory.root,
        )
    except FileNotFoundError:
        return
    directory.notes[0] = secrets.randbits(32)


def taken_notes(directory: RuntimeDirectory, node: str) -> Iterator[tuple[str, str]]:
    """Remove the notes to this process, and yield the group and the channel of each."""
    for name in list_folder(directory.root, f"n/{node}"):
        if name.startswith(_BEGINNING):
            path = f"n/{node}/{name}"
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory.root)
            try:
                group, _, channel = read_whole(fd).decode(errors="replace").partition("\n")
            finally:
                os.close(fd)
            os.unlink(path, dir_fd=directory.root)
            yield group, channel
