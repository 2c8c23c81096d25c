"""Named channels, which every process may receive from: ``runworker`` listens on such ones.

A process reads a message only when a ``receive`` is there to take it, and the receiving coroutine
reads it itself: no process ever holds a message on behalf of somebody who may be gone.

While no process receives from a channel, what is sent to it is parked in files, which outlive
their sender (see ``parking``).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from threading import RLock
from time import monotonic

from channels_ipc import spool, wire
from channels_ipc.directory import RuntimeDirectory
from channels_ipc.fifo import RECORD_SIZE, Fifo
from channels_ipc.limits import Limits
from channels_ipc.messages import Message, unpack
from channels_ipc.names import file_name
from channels_ipc.parking import Parking
from channels_ipc.tally import Tally
from channels_ipc.waiting import Listener, Waiter

logger = logging.getLogger("channels_ipc")


class NamedChannel:
    """One named channel, as a place to send to and to receive from."""

    def __init__(
        self,
        directory: RuntimeDirectory,
        name: str,
        limits: Limits,
        expired: Callable[[str], None],
        reading: Callable[[str], None],
        malformed: Tally,
    ) -> None:
        file = file_name(name)
        self.name = name
        self.streak = 0
        self._directory = directory
        self._limits = limits
        self._capacity = limits.capacity_of(name)
        self._on_expired = expired
        self._on_reading = reading
        self._malformed = malformed
        self._encoded_name = name.encode()
        self._address = wire.address(wire.MESSAGE, self._encoded_name)
        self._generation = directory.generation
        self._fifo = Fifo(directory, file, malformed)
        self._parking = Parking(directory, file, malformed)
        self._spool = f"s/{file}"
        self._may_be_parked = False
        self._lock = RLock()
        self._watches: dict[asyncio.AbstractEventLoop, _Watch] = {}

    # Sending.

    def post(self, payload: bytes, deadline: float, generation: int) -> bool:
        """Send one message; ``False`` where the channel is full."""
        frame = wire.encode_to(self._address, generation, deadline, payload)
        with self._lock:
            if not self._fifo.connect():
                return self._park(frame, deadline)
            if self._fifo.depth() >= self._capacity:
                self._make_room(self._capacity)
                if self._fifo.depth() >= self._capacity:
                    return False
            if len(frame) > RECORD_SIZE:
                return self._write_spooled(payload, deadline, generation)
            return self._write(frame, deadline)

    def _write(self, frame: bytes, deadline: float) -> bool:
        try:
            return self._fifo.write(frame)
        except BrokenPipeError:  # the last receiver has gone
            if not self._park_rest():
                return False
            self._fifo.close()
            return self._park(frame, deadline)

    def _write_spooled(self, payload: bytes, deadline: float, generation: int) -> bool:
        root = self._directory.root
        stored = spool.store(
            self._directory, self._spool, payload, self._capacity, self._limits.spool_bytes
        )
        if stored is None:
            return False
        name = self._encoded_name
        frame = wire.encode(wire.MESSAGE, generation, deadline, name, stored, flags=wire.SPOOLED)
        sent = False
        try:
            sent = self._write(frame, deadline)
        finally:
            if not sent:
                spool.discard(root, self._spool, stored)
        return sent

    def _make_room(self, limit: int) -> None:
        """Drop what is due no more from the head of the FIFO, until fewer than ``limit`` wait."""
        for record, frame in self._fifo.purge(self._is_due, limit):
            if self._is_due(frame):
                # A receiver was quicker, and this is the next. Back to its place in front of all
                # that follows it means: all of it parked, in order.
                if self._park_record(record, frame.deadline):
                    self._park_rest()
                    self._point_at_parking()
            else:
                self._drop(frame)

    def _is_due(self, frame: wire.Frame) -> bool:
        return frame.deadline > monotonic() and frame.generation == self._generation[0]

    def _drop(self, frame: wire.Frame) -> None:
        if frame.flags & wire.SPOOLED:
            spool.discard(self._directory.root, self._spool, frame.payload)
        if frame.kind == wire.MESSAGE and frame.generation == self._directory.generation[0]:
            self._on_expired(self.name)

    # Parking.

    def _park(self, frame: bytes, deadline: float) -> bool:
        room = (frame, self._capacity, self._limits.spool_bytes)
        if not self._parking.has_room(*room):
            for dropped in self._parking.purge(self._is_due):
                self._drop(dropped)
            if not self._parking.has_room(*room):
                return False
        try:
            self._parking.put(frame, deadline)
        except OSError as error:
            if error.errno in spool.FULL:
                return False
            raise
        self._point_at_parking()
        return True

    def _point_at_parking(self) -> None:
        """Tell a receiver that came in the meantime that there is something for it."""
        self._may_be_parked = True
        if self._fifo.connect():
            try:
                self._fifo.write(
                    wire.encode(wire.PARKED, self._directory.generation[0], 0.0, b"", b"")
                )
            except BrokenPipeError:
                self._fifo.close()

    def _park_rest(self) -> bool:
        """Park what waits in the FIFO; ``False`` where the file system had no room for all."""
        for record, frame in self._fifo.drain():
            if not self._is_due(frame):
                self._drop(frame)
            elif not self._park_record(record, frame.deadline):
                return False
        return True

    def _park_record(self, record: bytes, deadline: float) -> bool:
        """Park what was taken from the FIFO; ``False`` where it had to go back, to its end."""
        try:
            self._parking.put(record, deadline)
        except OSError as error:
            self._fifo.write(record)
            if error.errno in spool.FULL:
                return False
            raise
        return True

    # Receiving.

    def take(self) -> Message | None:
        """Return the next message, ``None`` where there is none."""
        with self._lock:
            if not self._fifo.reads:
                self._fifo.read_from_now_on(self._capacity * RECORD_SIZE)
                self._may_be_parked = True
                self._on_reading(self.name)
            while (frame := self._next_frame()) is not None:
                message = self._open_frame(frame)
                if message is not None:
                    return message
        return None

    def _next_frame(self) -> wire.Frame | None:
        if self._may_be_parked:
            frame = self._parking.take()
            if frame is not None:
                return frame
            self._may_be_parked = False
        return self._fifo.read()

    def _open_frame(self, frame: wire.Frame) -> Message | None:
        if frame.kind != wire.MESSAGE:
            self._may_be_parked = True
            if frame.kind != wire.PARKED:
                self._malformed.add(1, f"a frame of kind {frame.kind} in {self.name}")
            return None
        if not self._is_due(frame):
            self._drop(frame)
            self._fifo.wait_for_purge()
            self._may_be_parked = True
            return None
        payload: bytes | None = frame.payload
        if frame.flags & wire.SPOOLED:
            payload = spool.fetch(self._directory, self._spool, frame.payload)
        if payload is None:
            self._malformed.add(1, f"a message to {self.name}: its spool file is gone")
            return None
        return self.open(payload)

    def open(self, payload: bytes) -> Message | None:
        """Return the message in ``payload``, ``None`` where there is none."""
        try:
            return unpack(payload)
        except ValueError as error:
            self._malformed.add(1, f"a message to {self.name}: {error}")
        return None

    def wait(self, loop: asyncio.AbstractEventLoop) -> Waiter | None:
        """Return what to await until a message may have come."""
        watch = self._watches.get(loop) or self._watch(loop)
        waiter = Waiter(loop)
        watch.waiters.append(waiter)
        watch.listener.watch()
        return waiter

    def _watch(self, loop: asyncio.AbstractEventLoop) -> "_Watch":
        with self._lock:
            for other in [one for one in self._watches if one.is_closed()]:
                self._watches.pop(other).listener.stop()
            watch = self._watches[loop] = _Watch(loop, self._fifo.fd)
        return watch

    def forget(self, waiter: Waiter) -> None:
        """The coroutine behind ``waiter`` has gone; what waits wakes the next one by itself."""
        watch = self._watches.get(waiter.loop)
        if watch is not None and waiter in watch.waiters:
            watch.waiters.remove(waiter)

    # Ending.

    def hold(self) -> bool:
        """Keep the FIFO open, so that what waits in it survives its last receiver.

        ``False`` where there is no receiver.
        """
        with self._lock:
            return self._fifo.connect(make=False)

    def is_idle(self) -> bool:
        return not any(watch.waiters for watch in self._watches.values())

    def purge_all(self) -> None:
        """Drop everything at the head that is due no more, parked messages included."""
        with self._lock:
            for dropped in self._parking.purge(self._is_due):
                self._drop(dropped)
            self._make_room(1)

    def close(self) -> None:
        """Let go of the FIFO. Where nobody else receives, what waits in it is parked."""
        with self._lock:
            watches, self._watches = list(self._watches.values()), {}
            for watch in watches:
                watch.listener.stop()
            try:
                if self._fifo.fd >= 0 and not self._fifo.has_other_reader() and self._fifo.depth():
                    self._park_last()
            finally:
                self._fifo.close()

    def _park_last(self) -> None:
        if not self._park_rest():
            logger.warning(
                "no space to park %d messages to %s: what no other process has open is lost",
                self._fifo.depth(),
                self.name,
            )

    def forget_all(self) -> None:
        """Close what a child process inherited, and leave everything to the parent."""
        for watch in self._watches.values():
            watch.listener.forget()
        self._fifo.close()


class _Watch:
    """The coroutines of one loop that wait for the channel. Touched by the loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        self.waiters: deque[Waiter] = deque()
        self.listener = Listener(loop, fd, self._on_readable)

    def _on_readable(self) -> None:
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.done:
                waiter.resume()
                return
        # Nobody wants what waits. Not taken off the loop earlier: as a rule the next ``receive``
        # comes before the next message.
        self.listener.rest()
