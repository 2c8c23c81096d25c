"""The queues of this process's own channels, and what puts messages into them.

Everything here happens inside one process, under one lock that is only ever held for a few
microseconds of bookkeeping.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from threading import Lock

from channels_ipc import wire
from channels_ipc.directory import RuntimeDirectory
from channels_ipc.groups import Memberships
from channels_ipc.mailbox import Mailbox
from channels_ipc.messages import Message, Payload, Shared, open_payload
from channels_ipc.tally import Tally
from channels_ipc.waiting import Listener, Waiter, resume_all, wake

SWEEP_S = 10.0  # how often, at most, all queues are looked through; only ever while in use

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
        capacity: int,
        capacity_of: Callable[[str], int],
        expired: Callable[[str], None],
        malformed: Tally,
        dropped: Tally,
    ) -> None:
        self.lock = Lock()
        self.mailbox = Mailbox(directory, capacity)
        self.node = self.mailbox.node
        self.queues: dict[str, Queue] = {}
        self.memberships = Memberships()
        self.malformed = malformed
        self.dropped = dropped
        self._directory = directory
        self._generation = directory.generation
        self._capacity_of = capacity_of
        self._on_expired = expired
        self._expired: list[str] = []
        self._listeners: dict[asyncio.AbstractEventLoop, Listener] = {}
        self._sweep_at = 0.0

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
            queue.full = True
            self.mailbox.status.mark_full(queue.channel, queue.items[0][0])
        return self.next_waiter(queue) if queue.waiters else None

    def next_waiter(self, queue: Queue) -> Waiter | None:
        while queue.waiters:
            waiter = queue.waiters.popleft()
            if not waiter.done and not waiter.loop.is_closed():
                return waiter
        return None

    def pop(self, queue: Queue) -> Payload | None:
        """Remove the oldest item and return its payload, ``None`` where it is due no more."""
        if not queue.items:
            return None
        deadline, generation, payload = queue.items.popleft()
        if queue.full:
            self._mark(queue)
        if generation != self._directory.generation:
            return None
        if deadline <= time.monotonic():
            self._expired.append(queue.channel)
            return None
        return payload

    def make_room(self, queue: Queue) -> bool:
        """Drop what is due no more from the head; whether there is room now."""
        now = time.monotonic()
        generation = self._directory.generation
        items = queue.items
        while items and (items[0][1] != generation or items[0][0] <= now):
            if items[0][1] == generation:
                self._expired.append(queue.channel)
            items.popleft()
        if queue.full:
            self._mark(queue)
        return len(items) < queue.capacity

    def _mark(self, queue: Queue) -> None:
        queue.full = len(queue.items) >= queue.capacity
        if queue.full:
            self.mailbox.status.mark_full(queue.channel, queue.items[0][0])
        else:
            self.mailbox.status.clear_full(queue.channel)

    # Groups. The lock is held.

    def refresh(self) -> None:
        """After a flush: no groups, and no messages from before it."""
        if self._generation != self._directory.generation:
            self._generation = self._directory.generation
            for group in self.memberships.groups():
                self.mailbox.status.discard_group(group)
            self.memberships = Memberships()
            for queue in self.queues.values():
                self.make_room(queue)

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
        item = (deadline, generation, Shared(payload))
        now = time.monotonic()
        waiters = []
        gone = []
        for channel, until in self.memberships.members(group).items():
            if until <= now:
                gone.append(channel)
                continue
            waiter = self._fan_to(channel, item, now)
            if waiter is not None:
                waiters.append(waiter)
        for channel in gone:
            self._leave(group, channel)
        return waiters

    def _fan_to(self, channel: str, item: Item, now: float) -> Waiter | None:
        queue = self.queue(channel)
        if queue.items and (queue.items[0][0] <= now or len(queue.items) >= queue.capacity):
            before = len(self._expired)
            fits = self.make_room(queue)
            if len(self._expired) > before:  # a member that lets messages expire is none
                return None
            if not fits:
                self.dropped.add(1, f"{channel} is full")
                return None
        return self.append(queue, item)

    # What comes in.

    def pump(self) -> list[Waiter]:
        """Take what waits in the mailbox; return the coroutines to wake."""
        with self.lock:
            waiters = self._read_mailbox()
        self.settle()
        return waiters

    def catch_up(self) -> list[Waiter]:
        """The same before a message of this process, which is younger. The lock is held."""
        return self._read_mailbox() if self.mailbox.depth() else []

    def _read_mailbox(self) -> list[Waiter]:
        waiters: list[Waiter] = []
        frames, skipped = self.mailbox.read()
        for frame in frames:
            self._accept(frame, waiters)
        if skipped:
            self.malformed.add(skipped, "bytes in a mailbox that are no frame")
        return waiters

    def accept(self, frame: wire.Frame) -> list[Waiter]:
        """Take a frame as if it had come through the mailbox; return the coroutines to wake."""
        with self.lock:
            waiters = self.catch_up()
            self._accept(frame, waiters)
        self.settle()
        return waiters

    def _accept(self, frame: wire.Frame, waiters: list[Waiter]) -> None:
        if frame.generation != self._directory.generation:
            self.mailbox.discard(frame)
            return
        if frame.kind == wire.DISCARD:
            self.refresh()
            self._leave(frame.extra, frame.name)
            return
        payload = self.mailbox.payload_of(frame)
        if payload is None:
            self.malformed.add(1, f"a message to {frame.name} whose spool file is gone")
        elif frame.kind == wire.GROUP:
            self.refresh()
            waiters.extend(self._fan_out(frame.name, payload, frame.deadline, frame.generation))
        else:
            waiter = self._accept_one(frame, payload)
            if waiter is not None:
                waiters.append(waiter)

    def _accept_one(self, frame: wire.Frame, payload: bytes) -> Waiter | None:
        item = (frame.deadline, frame.generation, payload)
        if frame.kind == wire.MESSAGE:
            return self.append(self.queue(frame.name), item)
        if frame.name in self.memberships.members(frame.extra):
            return None  # it had the group's own frame
        return self._fan_to(frame.name, item, time.monotonic())

    def settle(self) -> None:
        """With the lock free: end the memberships of channels whose messages expired unread."""
        if self._sweep_at <= (now := time.monotonic()):
            self._sweep(now)
        if not self._expired:
            return
        with self.lock:
            channels, self._expired = set(self._expired), []
            for channel in channels:
                for group in self.memberships.groups_of(channel):
                    self._leave(group, channel)
        for channel in channels:
            self._on_expired(channel)

    def _sweep(self, now: float) -> None:
        """Drop what expired in channels that nobody uses any more, and their queues."""
        with self.lock:
            self._sweep_at = now + SWEEP_S
            for channel, queue in list(self.queues.items()):
                if queue.items:
                    self.make_room(queue)
                if not queue.items and not queue.waiters:
                    del self.queues[channel]

    # Event loops.

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have ``loop`` read the mailbox from now on."""
        if loop in self._listeners:
            return
        with self.lock:
            for other in [one for one in self._listeners if one.is_closed()]:
                self._listeners.pop(other).stop()
            self._listeners[loop] = Listener(loop, self.mailbox.fd, self._on_readable)

    def _on_readable(self) -> None:
        here = asyncio.get_running_loop()
        waiters = self.pump()
        mine = deque(waiter for waiter in waiters if waiter.loop is here)
        if len(mine) < len(waiters):
            wake(waiter for waiter in waiters if waiter.loop is not here)
        resume_all(mine)

    def forget(self) -> None:
        """Close what a child process inherited."""
        for listener in self._listeners.values():
            listener.forget()
        self.mailbox.forget()

    def close(self) -> None:
        with self.lock:
            listeners, self._listeners = list(self._listeners.values()), {}
        for listener in listeners:
            listener.stop()
        self.mailbox.close()


class LocalChannel:
    """One of this process's own channels, as a place to send to and to receive from.

    It holds the channel's name and not its queue: a sweep removes queues that stand empty.
    """

    __slots__ = ("_inbox", "name", "streak")

    def __init__(self, inbox: Inbox, name: str) -> None:
        self._inbox = inbox
        self.name = name
        self.streak = 0

    def post(self, payload: bytes, deadline: float, generation: int) -> bool:
        """Queue a message; ``False`` where the channel is full."""
        inbox = self._inbox
        with inbox.lock:
            waiters = inbox.catch_up()
            queue = inbox.queue(self.name)
            fits = len(queue.items) < queue.capacity or inbox.make_room(queue)
            if fits and (waiter := inbox.append(queue, (deadline, generation, payload))):
                waiters.append(waiter)
        if waiters:
            wake(waiters)
        inbox.settle()
        return fits

    def take(self) -> Message | None:
        """Return the oldest message that is still due, ``None`` where there is none."""
        inbox = self._inbox
        while True:
            with inbox.lock:
                queue = inbox.queues.get(self.name)
                if queue is None or not queue.items:
                    return None
                payload = inbox.pop(queue)
            inbox.settle()
            if payload is not None:
                try:
                    return open_payload(payload)
                except ValueError as error:
                    inbox.malformed.add(1, f"a message to {self.name}: {error}")

    def post_as_member(self, group: str, payload: bytes, deadline: float, generation: int) -> bool:
        """Queue a group's message, unless the channel counts among the group's own members."""
        frame = wire.Frame(wire.MEMBER, 0, generation, deadline, self.name, group, payload)
        waiters = self._inbox.accept(frame)
        wake(waiters)
        return True

    def wait(self, loop: asyncio.AbstractEventLoop) -> Waiter | None:
        """Return what to await until a message may have come, ``None`` where one has."""
        inbox = self._inbox
        inbox.listen(loop)
        with inbox.lock:
            queue = inbox.queue(self.name)
            if queue.items:
                return None
            waiter = Waiter(loop)
            queue.waiters.append(waiter)
        return waiter

    def forget(self, waiter: Waiter) -> None:
        """The coroutine behind ``waiter`` has gone: whatever woke it is for the next one."""
        inbox = self._inbox
        with inbox.lock:
            queue = inbox.queue(self.name)
            if waiter in queue.waiters:
                queue.waiters.remove(waiter)
            heir = inbox.next_waiter(queue) if queue.items else None
        if heir is not None:
            wake((heir,))
