"""The faults a person can put right, said with the path and the remedy."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


class IPCError(RuntimeError):
    """The runtime directory cannot be used as it is; the text names the path and the remedy."""


_ANOTHER_DIRECTORY = 'or set "directory" in the layer\'s CONFIG to another place'

REMEDIES = {
    errno.ENOSPC: f"free space there, {_ANOTHER_DIRECTORY}",
    errno.EDQUOT: f"raise the quota, {_ANOTHER_DIRECTORY}",
    errno.EROFS: f"mount it for writing, {_ANOTHER_DIRECTORY}",
    errno.EACCES: f"give this user the right to write there, {_ANOTHER_DIRECTORY}",
    errno.EPERM: f"give this user the right to write there, {_ANOTHER_DIRECTORY}",
    errno.ENOENT: "something removed it: restart every process that uses this prefix",
    errno.ENOTDIR: f"move away what is in its place, {_ANOTHER_DIRECTORY}",
    errno.EMFILE: "raise the limit of open files (ulimit -n) or close what leaks them",
    errno.ENFILE: "raise fs.file-max: the whole machine is out of open files",
}


def explain(error: OSError, path: str) -> NoReturn:
    """Raise an ``IPCError`` with the path and the remedy; ``error`` itself where none is known.

    ``path`` is the directory that the error's own path, where it has one, is relative to.
    """
    remedy = REMEDIES.get(error.errno or 0)
    if remedy is None:
        raise error
    if isinstance(error.filename, str):
        path = os.path.join(path, error.filename)  # noqa: PTH118 - an absolute one stays as it is
    raise IPCError(f"{path}: {error.strerror}: {remedy}") from error


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Have every ``OSError`` explained."""
    try:
        yield
    except OSError as error:
        explain(error, path)
