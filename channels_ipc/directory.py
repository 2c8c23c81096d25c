"""The runtime directory: where the processes of one user find each other.

One directory a prefix, all of it readable by its user only:

    meta            the layout's version and two words that all processes share: the generation,
                    which ``flush`` changes, and one that changes with each note
    n/<node>/       one process: its mailbox (a FIFO), its status page, its spool, notes to it
    q/<channel>     one named channel: a FIFO that all receivers share
    p/<channel>/    messages parked while a named channel has no receiver
    s/<channel>/    the spool of a named channel
    g/<group>/      members that are not the receiving process's own affair

Everything is opened relative to one directory descriptor, whose owner and mode were checked on the
descriptor itself: nobody can swap the directory under a running process.
"""

import contextlib
import errno
import os
import secrets
import shutil
import stat
import time
from pathlib import Path

from channels_ipc import meta, pipes
from channels_ipc.errors import IPCError, explained
from channels_ipc.names import file_name
from channels_ipc.retiring import retire

FOLDERS = ("n", "q", "p", "s", "g")

# Directory times come from a clock that ticks every 1 to 10 ms: a change in the same tick as the
# last listing would go unseen.
_TICK_NS = 20_000_000


def default_directory() -> str:
    """Return the directory that every process of this user finds, whatever its environment."""
    parent = "/dev/shm" if Path("/dev/shm").is_dir() else "/tmp"  # noqa: S108
    return f"{parent}/channels-ipc-{os.geteuid()}"


class Listing:
    """The names in one folder, read again only when the folder has changed."""

    def __init__(self, root: int, folder: str) -> None:
        self._root = root
        self._folder = folder
        self._seen_ns = -1
        self._names: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Return the names, without those that begin with a dot; none if there is no folder."""
        try:
            changed_ns = os.stat(self._folder, dir_fd=self._root).st_mtime_ns
        except FileNotFoundError:
            return ()
        if changed_ns != self._seen_ns:
            settled = time.time_ns() - changed_ns > _TICK_NS
            self._names = list_folder(self._root, self._folder)
            self._seen_ns = changed_ns if settled else -1
        return self._names


def list_folder(root: int, folder: str, *, hidden: bool = False) -> tuple[str, ...]:
    """Return the sorted names in ``folder``; those that begin with a dot only if ``hidden``."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY, dir_fd=root)
    except FileNotFoundError:
        return ()
    try:
        names = os.listdir(fd)  # noqa: PTH208 - a Path cannot list a descriptor
        return tuple(sorted(name for name in names if hidden or name[0] != "."))
    finally:
        os.close(fd)


class RuntimeDirectory:
    """An open runtime directory. Raises ``IPCError`` where it cannot be trusted or used."""

    def __init__(self, base: str, prefix: str) -> None:
        self.path = f"{base}/{file_name(prefix)}"
        with explained(base):
            _make(base)
            self.root = _open_own(base)
        try:
            with explained(self.path):
                self._descend(file_name(prefix))
                words = meta.shared_words(self.root)
            if words is None:
                raise self._in_use()
            # In shared memory: what was sent under another generation was sent before a flush.
            self.generation, self.notes = words[:1], words[1:]
        except BaseException:
            os.close(self.root)
            raise
        self._nodes = Listing(self.root, "n")
        self._spare: int | None = None
        self.keep_spare()

    def _descend(self, prefix: str) -> None:
        inner = self._open_prefix(prefix)
        # What was opened a moment ago may have been cleared away by another process since.
        while (outdated := meta.is_outdated(inner)) or not pipes.is_at(inner, prefix, self.root):
            os.close(inner)
            if outdated and not retire(self.root, prefix):
                raise self._in_use()
            inner = self._open_prefix(prefix)
        os.close(self.root)
        self.root = inner
        for folder in FOLDERS:
            self.make_folder(folder)

    def _open_prefix(self, prefix: str) -> int:
        while True:
            with contextlib.suppress(FileExistsError):
                os.mkdir(prefix, 0o700, dir_fd=self.root)
            with contextlib.suppress(FileNotFoundError):  # cleared away in between
                return _open_own(prefix, root=self.root, shown=self.path)

    def _in_use(self) -> IPCError:
        return IPCError(
            f"{self.path}: in use by another version of channels_ipc: stop every process that"
            " uses it, or set another prefix"
        )

    def advance(self) -> None:
        """Begin another generation. One aligned store: no lock, and a stalled process sees it.

        At random, so that a process stopped in here brings no old one back when it goes on.
        """
        present = self.generation[0]
        while (new := secrets.randbits(32)) == present:
            pass
        self.generation[0] = new

    def make_folder(self, folder: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700, dir_fd=self.root)

    def remove_folder(self, folder: str) -> None:
        shutil.rmtree(folder, ignore_errors=True, dir_fd=self.root)

    def nodes(self) -> tuple[str, ...]:
        """Return the nodes whose folders are complete; some may be dead."""
        return self._nodes.names()

    def bury(self, node: str) -> None:
        """Remove a dead node's folder. Renaming first makes one of several buriers the one."""
        grave = f"n/.dead-{node}"
        with contextlib.suppress(OSError):
            os.rename(f"n/{node}", grave, src_dir_fd=self.root, dst_dir_fd=self.root)
        self.remove_folder(grave)

    def create(self, path: str) -> int:
        """Open a new file for writing, in a folder that is made where it is missing."""
        while True:
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self.root)
            except FileNotFoundError:
                self.make_folder(path.rpartition("/")[0])

    def open_received(self, path: str) -> int:
        """Open a file whose name was received, for reading.

        With no descriptor left, the spare one is given up for it: the message was accepted and
        must not be lost. Call ``keep_spare`` when the file is closed again.
        """
        try:
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self.root)
        except OSError as error:
            spare, self._spare = self._spare, None
            if error.errno not in (errno.EMFILE, errno.ENFILE) or spare is None:
                self._spare = spare
                raise
        os.close(spare)
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self.root)

    def keep_spare(self) -> None:
        """Set a descriptor aside for ``open_received``, if there is one."""
        if self._spare is None:
            with contextlib.suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        os.close(self.root)


def _make(path: str) -> None:
    """Make ``path`` and its missing parents, each for this user only."""
    for folder in (*reversed(Path(path).parents), Path(path)):
        with contextlib.suppress(FileExistsError):
            if not folder.exists():
                folder.mkdir(mode=0o700)


def _open_own(path: str, root: int | None = None, shown: str | None = None) -> int:
    """Open the directory at ``path``; raise ``IPCError`` unless it is this user's alone."""
    shown = shown or path
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise IPCError(f"{shown}: not a directory but a link or a file: remove it") from error
        raise
    fault = _fault_of(os.fstat(fd))
    if fault is not None:
        os.close(fd)
        raise IPCError(f"{shown}: {fault.format(path=shown)}")
    return fd


def _fault_of(found: os.stat_result) -> str | None:
    if found.st_uid != os.geteuid():
        return (
            f"belongs to user {found.st_uid}, and this process is user {os.geteuid()}:"
            ' have it removed, or set "directory" in the layer\'s CONFIG to another place'
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        return "open to other users: chmod 700 {path}"
    return None
