"""What one client is still to be sent.

A hub appends to it; one task of the client's takes from it. The bytes are shared with every other
outbox of the process, so a waiting record costs a client eight bytes.
"""

import asyncio
from collections.abc import Callable, Sequence

DROP_OLDEST = "drop oldest"
CLOSE = "close"


def fitting(records: Sequence[bytes], most_bytes: int) -> int:
    """Return how many of ``records``, from the first on, ``most_bytes`` hold; one at least."""
    size_bytes = 0
    for count, record in enumerate(records):
        size_bytes += len(record)
        if count and size_bytes > most_bytes:
            return count
    return len(records)


class Ended(Exception):  # noqa: N818 - an outcome to act on, not a fault
    """Nothing more will come; the text says why."""


class Overflow(Ended):
    """The client fell behind, and its policy is to be closed."""


class Outbox:
    """A bounded queue of enclosed records for one client.

    ``limit`` is the number of records that may wait. Past it, ``DROP_OLDEST`` forgets the oldest
    and counts them in ``dropped``; ``CLOSE`` makes the next ``batch`` raise ``Overflow``. The limit
    is applied when the hub flushes, so it may be passed by as many records as come between two
    flushes. One task may wait in ``batch`` at a time. ``pending`` is what the hub appends to.
    ``on_end`` is called when nothing more will come, for a task that waits for something else.
    """

    __slots__ = ("_ended", "_waiter", "dropped", "limit", "on_end", "pending", "policy")

    def __init__(self, limit: int = 10_000, policy: str = DROP_OLDEST) -> None:
        if limit < 1:
            raise ValueError(f"an outbox of {limit} records could hold nothing")
        if policy not in (DROP_OLDEST, CLOSE):
            raise ValueError(f"{policy!r} is no policy for slow clients: take DROP_OLDEST or CLOSE")
        self.limit = limit
        self.policy = policy
        self.dropped = 0
        # The same list for life: the hub appends to it without looking at the outbox.
        self.pending: list[bytes] = []
        self.on_end: Callable[[], None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._ended: Ended | None = None

    def settle(self) -> int:
        """Apply the limit, wake the task that waits, and return the number of records dropped."""
        dropped = max(0, len(self.pending) - self.limit)
        if dropped and self.policy == CLOSE:
            self._end(Overflow(f"more than {self.limit} records were waiting"))
        if isinstance(self._ended, Overflow):
            # What comes behind the hole must not be given as if there were none.
            dropped = len(self.pending)
        if dropped:
            del self.pending[:dropped]
            self.dropped += dropped
        self._wake()
        return dropped

    def discard(self) -> int:
        """Forget what is pending, and return how many records that was."""
        discarded = len(self.pending)
        self.pending.clear()
        return discarded

    def end(self, reason: str) -> None:
        """Make ``batch`` raise ``Ended`` once what is pending has been taken."""
        self._end(self._ended or Ended(reason))
        self._wake()

    def check(self) -> None:
        """Raise ``Overflow`` or ``Ended`` where nothing more will come, whatever is pending."""
        if self._ended is not None:
            raise self._ended

    def _end(self, ended: Ended) -> None:
        self._ended = ended
        if self.on_end is not None:
            self.on_end()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and (self.pending or self._ended) and not waiter.done():
            waiter.set_result(None)

    def shortened(self, batch: list[bytes], most_bytes: int) -> list[bytes]:
        """Return the first of ``batch`` that fit, and have the others wait for the next."""
        count = fitting(batch, most_bytes)
        self.pending[:0] = batch[count:]
        return batch[:count]

    async def batch(self, most: int = 1_000) -> list[bytes]:
        """Wait until something is pending, and return the oldest ``most`` of it.

        Raises ``Overflow`` where the client fell behind and its policy is ``CLOSE``, and ``Ended``
        where the hub has stopped. A cancelled wait loses nothing.
        """
        while not self.pending or isinstance(self._ended, Overflow):
            if self._ended is not None:
                raise self._ended
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        batch = self.pending[:most]
        del self.pending[:most]
        return batch
