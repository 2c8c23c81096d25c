"""A process's own mailbox, and the mailboxes of the others as a sender sees them."""

import errno
import mmap
import os
import weakref
from functools import partial
from threading import Lock

from channels_ipc import pipes, spool
from channels_ipc.directory import RuntimeDirectory
from channels_ipc.errors import explained
from channels_ipc.limits import Limits
from channels_ipc.names import new_node
from channels_ipc.status import SIZE, Status, StatusView
from channels_ipc.tally import Tally
from channels_ipc.wire import FRAME_LIMIT, SPOOLED, Frame, decode, encode, split

READ_SIZE = 65_536
SIZE_LIMIT = 1 << 20  # what an ordinary user may ask for, unless fs.pipe-max-size says otherwise
_GONE = (errno.ENXIO, errno.ENOENT)  # nobody reads it; it was removed


class Mailbox:
    """The one place where this process is sent messages: a FIFO that only it reads.

    Its folder is made under another name and renamed once everything is in place and the FIFO is
    open for reading. So a visible mailbox without a reader always belonged to a process that died,
    and no process id is needed to know it.
    """

    def __init__(self, directory: RuntimeDirectory, capacity: int, malformed: Tally) -> None:
        self.node = new_node()
        self._malformed = malformed
        self._directory = directory
        self._rest = b""
        self._count = pipes.counter()
        partial = f"n/.new-{self.node}"
        try:
            with explained(directory.path):
                self._set_up(partial, capacity)
        except BaseException:
            directory.remove_folder(partial)
            raise

    def _set_up(self, partial: str, capacity: int) -> None:
        root = self._directory.root
        os.mkdir(partial, 0o700, dir_fd=root)
        os.mkdir(f"{partial}/spool", 0o700, dir_fd=root)
        self.status = Status(_new_page(f"{partial}/status", root))
        pipes.make(f"{partial}/mailbox", root)
        # For reading and writing: a FIFO whose last writer has gone would be readable for ever.
        self.fd = os.open(f"{partial}/mailbox", os.O_RDWR | os.O_NONBLOCK, dir_fd=root)
        pipes.ask_for_size(self.fd, min(capacity * FRAME_LIMIT, SIZE_LIMIT), "a mailbox")
        os.rename(partial, f"n/{self.node}", src_dir_fd=root, dst_dir_fd=root)

    def depth(self) -> int:
        """Return the number of bytes that wait. Not for several threads at once."""
        return pipes.depth(self.fd, self._count)

    def read(self) -> list[Frame]:
        """Return the frames that wait."""
        try:
            data = os.read(self.fd, READ_SIZE)
        except BlockingIOError:
            return []
        if not self._rest:  # as a rule: one frame, and nothing else
            found = decode(data)
            if found is not None and found[1] == len(data):
                return [found[0]]
        drained = len(data) < READ_SIZE
        frames, self._rest, skipped = split(self._rest + data, drained=drained)
        if skipped:
            self._malformed.add(skipped, "bytes in a mailbox that are no frame")
        return frames

    def payload_of(self, frame: Frame) -> bytes | None:
        """Return what the frame carries, ``None`` where its spool file is gone."""
        if frame.flags & SPOOLED:  # see also Inbox._accept
            return spool.fetch(self._directory, f"n/{self.node}/spool", frame.payload)
        return frame.payload

    def discard(self, frame: Frame) -> None:
        """Remove what a frame nobody will read keeps in the spool."""
        if frame.flags & SPOOLED:
            spool.discard(self._directory.root, f"n/{self.node}/spool", frame.payload)

    def close(self) -> None:
        self._directory.bury(self.node)
        os.close(self.fd)

    def forget(self) -> None:
        """Close the descriptor a child process inherited: the mailbox is its parent's."""
        os.close(self.fd)


def _new_page(path: str, root: int) -> memoryview:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=root)
    try:
        # Written, not truncated to size: on a full tmpfs a page that is not there yet is SIGBUS.
        spool.write_whole(fd, bytes(SIZE))
        return memoryview(mmap.mmap(fd, SIZE))
    finally:
        os.close(fd)


class Peer:
    """Another process's mailbox and status page."""

    def __init__(self, directory: RuntimeDirectory, node: str, limits: Limits) -> None:
        self.node = node
        self._directory = directory
        self._limits = limits
        root = directory.root
        self._fd = os.open(f"n/{node}/mailbox", os.O_WRONLY | os.O_NONBLOCK, dir_fd=root)
        # With the last reference: no other thread can close it between a look at it and a write.
        weakref.finalize(self, os.close, self._fd)
        page = os.open(f"n/{node}/status", os.O_RDONLY, dir_fd=root)
        try:
            self.status = StatusView(memoryview(mmap.mmap(page, SIZE, prot=mmap.PROT_READ)))
        finally:
            os.close(page)
        self.full_until = self.status.full_until
        # Sends a frame of at most ``FRAME_LIMIT`` bytes. ``BlockingIOError`` means that there is no
        # room for it, ``BrokenPipeError`` that the process has died.
        self.write = partial(os.write, self._fd)

    def post(
        self,
        kind: int,
        generation: int,
        deadline: float,
        name: bytes,
        payload: bytes,
        extra: bytes = b"",
    ) -> bool:
        """Send one frame; ``False`` where the mailbox has no room for it.

        Raises ``BrokenPipeError`` where the process has died.
        """
        frame = encode(kind, generation, deadline, name, payload, extra)
        if len(frame) <= FRAME_LIMIT:
            return self._write(frame)
        return self._post_spooled(kind, generation, deadline, name, payload, extra)

    def _post_spooled(
        self,
        kind: int,
        generation: int,
        deadline: float,
        name: bytes,
        payload: bytes,
        extra: bytes,
    ) -> bool:
        root, folder = self._directory.root, f"n/{self.node}/spool"
        try:
            stored = spool.store(
                self._directory, folder, payload, self._limits.capacity, self._limits.spool_bytes
            )
        except FileNotFoundError as error:  # somebody else has buried it
            raise BrokenPipeError from error
        if stored is None:
            return False
        frame = encode(kind, generation, deadline, name, stored, extra, SPOOLED)
        sent = False
        try:
            sent = self._write(frame)
        finally:
            if not sent:
                spool.discard(root, folder, stored)
        return sent

    def _write(self, frame: bytes) -> bool:
        try:
            self.write(frame)
        except BlockingIOError:
            return False
        return True

    def is_alive(self) -> bool:
        return pipes.has_reader(self._fd)


class Peers:
    """The other processes, by node. Descriptors are opened once and closed with their process."""

    def __init__(self, directory: RuntimeDirectory, limits: Limits) -> None:
        self._directory = directory
        self._limits = limits
        self._lock = Lock()
        self._peers: dict[str, Peer] = {}
        self.known = self._peers.get  # the quick way to those that are open

    def get(self, node: str) -> Peer | None:
        """Return the process called ``node``, ``None`` where it has died."""
        return self.known(node) or self._connect(node)

    def _connect(self, node: str) -> Peer | None:
        with self._lock:
            if node in self._peers:
                return self._peers[node]
            self._drop_dead()
            try:
                peer = Peer(self._directory, node, self._limits)
            except OSError as error:
                if error.errno not in _GONE:
                    raise
                self._directory.bury(node)
                return None
            self._peers[node] = peer
            return peer

    def _drop_dead(self) -> None:
        for node, peer in list(self._peers.items()):
            if not peer.is_alive():
                del self._peers[node]

    def lose(self, node: str) -> None:
        """The process has died: let go of what leads to it and remove what it left."""
        with self._lock:
            self._peers.pop(node, None)
        self._directory.bury(node)

    def close(self) -> None:
        with self._lock:
            self._peers.clear()
