"""The faults a person can put right, said with the path and the remedy."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager


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


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn an ``OSError`` with a known remedy into an ``IPCError`` that names ``path`` and it."""
    try:
        yield
    except OSError as error:
        remedy = REMEDIES.get(error.errno or 0)
        if remedy is None:
            raise
        raise IPCError(f"{path}: {error.strerror}: {remedy}") from error
