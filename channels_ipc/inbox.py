"""The queues of this process's own channels, and what puts messages into them.

Everything here happens inside one process, under one lock that is only ever held for a few
microseconds of bookkeeping.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock
from time import monotonic

from channels_ipc import wire
from channels_ipc.directory import RuntimeDirectory
from channels_ipc.groups import Memberships
from channels_ipc.limits import SWEEP_S, Limits
from channels_ipc.mailbox import Mailbox
from channels_ipc.messages import Payload, Shared
from channels_ipc.names import node_of
from channels_ipc.notes import taken_notes
from channels_ipc.tally import Tally
from channels_ipc.waiting import Listener, Waiter, wake, wake_now

Item = tuple[float, int, Payload]  # deadline on the monotonic clock, generation, payload


class Queue:
    """The messages of one process-local channel, and the coroutines that wait for them."""

    __slots__ = ("capacity", "channel", "full", "items", "waiters")

    def __init__(self, channel: str, capacity: int) -> None:
        self.channel = channel
        self.capacity = capacity
        self.full = False
        self.items: deque[Item] = deque()
        self.waiters: deque[Waiter] = deque()


class Inbox:
    """All queues of one node, its mailbox, and its members of groups."""

    def __init__(
        self,
        directory: RuntimeDirectory,
        limits: Limits,
        expired: Callable[[str], None],
        held: Callable[[str], None],
        malformed: Tally,
        dropped: Tally,
    ) -> None:
        self.lock = Lock()
        self.mailbox = Mailbox(directory, limits.capacity, malformed)
        self.node = self.mailbox.node
        self.queues: dict[str, Queue] = {}
        self.memberships = Memberships()
        self.malformed = malformed
        self.dropped = dropped
        self._directory = directory
        self._generation_word = directory.generation
        self._generation = directory.generation[0]
        self._notes_seen = 0
        self._capacity_of = limits.capacity_of
        self._on_expired = expired
        self._on_held = held
        self.expired: list[str] = []
        self._to_hold: set[str] = set()
        self.listeners: dict[asyncio.AbstractEventLoop, Listener] = {}
        self.sweep_at = 0.0

    # Queues. The lock is held.

    def queue(self, channel: str) -> Queue:
        found = self.queues.get(channel)
        if found is None:
            found = self.queues[channel] = Queue(channel, self._capacity_of(channel))
        return found

    def append(self, queue: Queue, item: Item) -> Waiter | None:
        """Queue ``item``; return the coroutine to wake."""
        queue.items.append(item)
        if len(queue.items) >= queue.capacity:
            self._mark(queue)
        return self.next_waiter(queue) if queue.waiters else None

    def next_waiter(self, queue: Queue) -> Waiter | None:
        while queue.waiters:
            waiter = queue.waiters.popleft()
            if not waiter.done and not waiter.loop.is_closed():
                return waiter
        return None

    def pop(self, queue: Queue) -> Payload | None:
        """Remove the oldest item and return its payload, ``None`` where it is due no more."""
        deadline, generation, payload = queue.items.popleft()
        if queue.full:
            self._mark(queue)
        if generation != self._generation_word[0]:
            return None
        if deadline <= monotonic():
            self.expired.append(queue.channel)
            return None
        return payload

    def make_room(self, queue: Queue) -> bool:
        """Drop what is due no more from the head; whether there is room now."""
        now = monotonic()
        generation = self._generation_word[0]
        items = queue.items
        while items and (items[0][1] != generation or items[0][0] <= now):
            if items[0][1] == generation:
                self.expired.append(queue.channel)
            items.popleft()
        if queue.full:
            self._mark(queue)
        return len(items) < queue.capacity

    def _mark(self, queue: Queue) -> None:
        """Tell senders until when the queue is full: so many must expire that there is room."""
        queue.full = len(queue.items) >= queue.capacity
        if queue.full:
            until = max(queue.items[0][0], queue.items[-queue.capacity][0])
            self.mailbox.status.mark_full(queue.channel, until)
        else:
            self.mailbox.status.clear_full(queue.channel)

    # Groups. The lock is held.

    def refresh(self) -> None:
        """Notice a flush: no groups, and no messages from before it. Read notes, if there are."""
        if self._generation != self._generation_word[0]:
            self._generation = self._generation_word[0]
            for group in self.memberships.groups():
                self.mailbox.status.discard_group(group)
            self.memberships = Memberships()
            for queue in self.queues.values():
                self.make_room(queue)
        if self._notes_seen != (word := self._directory.notes[0]):
            with contextlib.suppress(OSError):  # no descriptor is left: the notes can wait
                for group, channel in taken_notes(self._directory, self.node):
                    self._leave(group, channel)
                self._notes_seen = word

    def join(self, group: str, channel: str, until: float) -> None:
        with self.lock:
            self.refresh()
            self.memberships.add(group, channel, until)
            self.mailbox.status.add_group(group)

    def leave(self, group: str, channel: str) -> None:
        with self.lock:
            self.refresh()
            self._leave(group, channel)

    def _leave(self, group: str, channel: str) -> None:
        self.memberships.discard(group, channel)
        if not self.memberships.members(group):
            self.mailbox.status.discard_group(group)

    def send_to_group(self, group: str, payload: bytes, deadline: float, generation: int) -> None:
        """Queue a message of this process for every member of ``group`` that it has."""
        with self.lock:
            self.refresh()
            waiters = self.catch_up()
            waiters += self._fan_out(group, payload, deadline, generation)
        wake(waiters)
        self.settle()

    def _fan_out(
        self, group: str, payload: bytes, deadline: float, generation: int
    ) -> list[Waiter]:
        """Queue a message for every member; return the coroutines to wake."""
        members = self.memberships.members(group)
        item = (deadline, generation, payload if len(members) == 1 else Shared(payload))
        now = monotonic()
        queues = self.queues
        waiters = []
        ended = []
        for channel, until in members.items():
            if until <= now:
                ended.append(channel)
                continue
            queue = queues.get(channel) or self.queue(channel)
            if queue.items and not self._takes(queue, now):
                continue
            queue.items.append(item)
            if len(queue.items) >= queue.capacity:
                self._mark(queue)
            if queue.waiters and (waiter := self.next_waiter(queue)):
                waiters.append(waiter)
        for channel in ended:
            self._leave(group, channel)
        return waiters

    def _takes(self, queue: Queue, now: float) -> bool:
        """Whether a group's message may go to ``queue``; if it is full, that is counted."""
        if queue.items[0][0] > now and len(queue.items) < queue.capacity:
            return True
        expired_before = len(self.expired)
        if not self.make_room(queue):
            self.dropped.add(1, f"{queue.channel} is full")
            return False
        return len(self.expired) == expired_before  # who lets messages expire is no member

    # What comes in.

    def catch_up(self) -> list[Waiter]:
        """Take what waits in the mailbox, before a message of this process, which is younger.

        The lock is held. Returns the coroutines to wake.
        """
        return self._accept_all(self.mailbox.read()) if self.mailbox.depth() else []

    def _accept_all(self, frames: list[wire.Frame]) -> list[Waiter]:
        waiters: list[Waiter] = []
        for frame in frames:
            self._accept(frame, waiters)
        return waiters

    def accept(self, frame: wire.Frame) -> list[Waiter]:
        """Take a frame as if it had come through the mailbox; return the coroutines to wake."""
        with self.lock:
            waiters = self.catch_up()
            self._accept(frame, waiters)
        self.settle()
        return waiters

    def _accept(self, frame: wire.Frame, waiters: list[Waiter]) -> None:
        kind, flags, generation, deadline, name, _, payload = frame
        if generation != self._generation_word[0]:
            self.mailbox.discard(frame)
            return
        if flags:
            fetched = self.mailbox.payload_of(frame)
            if fetched is None:
                self.malformed.add(1, f"a message to {name} whose spool file is gone")
                return
            payload = fetched
        if kind == wire.MESSAGE:
            queue = self.queues.get(name)
            if queue is None:
                if node_of(name) != self.node:
                    self._count_stray(frame)
                    return
                queue = self.queue(name)
            queue.items.append((deadline, generation, payload))
            if len(queue.items) >= queue.capacity:
                queue.full = True
                self.make_room(queue)
            if queue.waiters and (waiter := self.next_waiter(queue)):
                waiters.append(waiter)
        else:
            self._accept_for_group(frame, payload, waiters)

    def _accept_for_group(self, frame: wire.Frame, payload: bytes, waiters: list[Waiter]) -> None:
        self.refresh()
        if frame.kind == wire.GROUP:
            waiters += self._fan_out(frame.name, payload, frame.deadline, frame.generation)
        elif frame.kind == wire.DISCARD:
            self._leave(frame.extra, frame.name)
        elif frame.kind == wire.HOLD:
            self._to_hold.add(frame.name)
            self.sweep_at = 0.0  # have ``settle`` called: it needs what may not be locked here
        elif frame.kind != wire.MEMBER or node_of(frame.name) != self.node:
            self._count_stray(frame)
        elif frame.name not in self.memberships.members(frame.extra):  # else: had the group's own
            queue = self.queue(frame.name)
            if not queue.items or self._takes(queue, monotonic()):
                waiter = self.append(queue, (frame.deadline, frame.generation, payload))
                waiters += filter(None, (waiter,))

    def _count_stray(self, frame: wire.Frame) -> None:
        self.malformed.add(1, f"a frame that is not for this process: to {frame.name!r}")

    def settle(self) -> None:
        """With the lock free: end the memberships of channels whose messages expired unread."""
        if self.sweep_at <= (now := monotonic()):
            self._sweep(now)
            while self._to_hold:
                with contextlib.suppress(OSError):  # no descriptor is left
                    self._on_held(self._to_hold.pop())
        if not self.expired:
            return
        with self.lock:
            channels, self.expired = set(self.expired), []
            for channel in channels:
                for group in self.memberships.groups_of(channel):
                    self._leave(group, channel)
        for channel in channels:
            with contextlib.suppress(OSError):  # the same; what waits must reach its receiver
                self._on_expired(channel)

    def _sweep(self, now: float) -> None:
        """Drop what expired in channels and groups that nobody uses any more, and their queues."""
        with self.lock:
            self.sweep_at = now + SWEEP_S
            for group, channel in self.memberships.ended(now):
                self._leave(group, channel)
            for channel, queue in list(self.queues.items()):
                if queue.items:
                    self.make_room(queue)
                if not queue.items and not queue.waiters:
                    del self.queues[channel]

    # Event loops.

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have ``loop`` read the mailbox from now on."""
        with self.lock:
            for other in [one for one in self.listeners if one.is_closed()]:
                self.listeners.pop(other).stop()
            self.listeners[loop] = Listener(loop, self.mailbox.fd, partial(self._read_for, loop))

    def _read_for(self, loop: asyncio.AbstractEventLoop) -> None:
        """As a callback of ``loop``: take what waits in the mailbox, and run who waits for it."""
        now = monotonic()
        with self.lock:
            frames = self.mailbox.read()
            taker = self._taker(frames[0], now, loop) if len(frames) == 1 else None
            waiters = self._accept_all(frames) if taker is None else []
        if self.expired or self.sweep_at <= now:
            self.settle()
        if taker is not None:
            try:
                taker.hand(frames[0].payload)
            finally:
                if taker.payload is not None:
                    self._put_back(taker, frames[0])
        elif waiters:
            wake_now(waiters, loop)

    def _taker(
        self, frame: wire.Frame, now: float, loop: asyncio.AbstractEventLoop
    ) -> Waiter | None:
        """Return who may have the message with no detour over its queue: ``loop``'s, and next."""
        kind, flags, generation, deadline, name, _, _ = frame
        queue = self.queues.get(name)
        if (
            queue is None
            or not queue.waiters
            or queue.items
            or kind != wire.MESSAGE
            or flags
            or generation != self._generation_word[0]
            or deadline <= now
        ):
            return None
        waiter = queue.waiters[0]
        return queue.waiters.popleft() if waiter.loop is loop and not waiter.done else None

    def _put_back(self, taker: Waiter, frame: wire.Frame) -> None:
        """Queue what ``taker`` did not take at once: it will look there when it comes to it."""
        payload, taker.payload = taker.payload, None
        with self.lock:
            items = self.queue(frame.name).items
            items.appendleft((frame.deadline, frame.generation, payload))

    def forget(self) -> None:
        """Close what a child process inherited."""
        for listener in self.listeners.values():
            listener.forget()
        self.mailbox.forget()

    def close(self) -> None:
        with self.lock:
            listeners, self.listeners = list(self.listeners.values()), {}
        for listener in listeners:
            listener.stop()
        self.mailbox.close()
