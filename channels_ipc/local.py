"""A channel of this process's own, as a place to send to and to receive from."""

import asyncio

from channels_ipc import wire
from channels_ipc.inbox import Inbox
from channels_ipc.messages import Message, Payload, unpack
from channels_ipc.waiting import Waiter, wake


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
            queue = inbox.queues.get(self.name)
            if queue is None or not queue.items:
                return None
            with inbox.lock:
                if not queue.items:  # another thread was quicker
                    return None
                payload = inbox.pop(queue)
            if inbox.expired:
                inbox.settle()
            if payload is not None and (message := self.open(payload)) is not None:
                return message

    def open(self, payload: Payload) -> Message | None:
        """Return the message in ``payload``, ``None`` where there is none."""
        try:
            return unpack(payload) if type(payload) is bytes else payload.copy()  # type: ignore[union-attr]
        except ValueError as error:
            self._inbox.malformed.add(1, f"a message to {self.name}: {error}")
        return None

    def post_as_member(self, group: str, payload: bytes, deadline: float, generation: int) -> bool:
        """Queue a group's message, unless the channel counts among the group's own members."""
        frame = wire.Frame(wire.MEMBER, 0, generation, deadline, self.name, group, payload)
        waiters = self._inbox.accept(frame)
        wake(waiters)
        return True

    def wait(self, loop: asyncio.AbstractEventLoop) -> Waiter | None:
        """Return what to await until a message may have come, ``None`` where one has."""
        inbox = self._inbox
        if loop not in inbox.listeners:
            inbox.listen(loop)
        with inbox.lock:
            queue = inbox.queues.get(self.name) or inbox.queue(self.name)
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
