"""Long polling: the same feed as the socket's, one batch a request.

Between two polls a session keeps the client's outbox in the process. The cursor numbers the
batches, so a batch whose answer was lost on the way is given again, and one that arrived is not. A
process that does not know the session, because the client was sent elsewhere or the lease ended,
starts a new one at the cursor's positions: it asks every hub what it remembers, and names each
topic for which nobody can vouch as a gap.
"""

import asyncio
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from channels_hub.cursor import Cursor
from channels_hub.history import is_newer
from channels_hub.hub import Hub
from channels_hub.outbox import CLOSE, Ended, Outbox
from channels_hub.recall import Recaller
from channels_hub.records import HEADER, LENGTH

LEASE_S = 60.0
MOST_RECORDS = 1_000
OUTBOX_LIMIT = 10_000

_registries: WeakKeyDictionary[Hub, "PollSessions"] = WeakKeyDictionary()


class UnknownSession(LookupError):  # noqa: N818 - the client can help: an outcome, not a fault
    """The topics were left out, and this process does not know them."""


@dataclass(frozen=True)
class Batch:
    """One answer: enclosed records, the cursor behind them, and the topics that have a hole."""

    records: list[bytes]
    cursor: Cursor
    gaps: list[str] = field(default_factory=list)


class Session:
    """One polling client's place in this process."""

    def __init__(self, topics: frozenset[str], cursor: Cursor) -> None:
        self.topics = topics
        self.cursor = cursor
        # Its records are answered as a gap when they do not fit, so it is closed and not thinned.
        self.outbox = Outbox(OUTBOX_LIMIT, CLOSE)
        self.used_s = time.monotonic()
        self._backlog: list[bytes] = []
        self._gaps: list[str] = []
        self._last: Batch | None = None
        self._turn = asyncio.Lock()

    def prepend(self, records: Iterable[bytes], gaps: list[str]) -> None:
        """Put what other hubs remembered in front of what has come since."""
        self._backlog.extend(records)
        self._gaps = gaps

    def knows(self, cursor: Cursor) -> bool:
        """Whether ``cursor`` is this session's last answer, or the one before."""
        return cursor.session == self.cursor.session and (
            cursor.batch == self.cursor.batch
            or (self._last is not None and cursor.batch == self.cursor.batch - 1)
        )

    async def next(self, batch: int, timeout_s: float) -> Batch:
        """Return the batch after number ``batch``; an empty one if none comes in ``timeout_s``.

        Raises ``Ended`` where more has come than the outbox holds.
        """
        async with self._turn:
            self.used_s = time.monotonic()
            if self._last is not None and batch < self.cursor.batch:
                return self._last
            records = await self._take(timeout_s)
            self.used_s = time.monotonic()
            if not records and not self._gaps:
                return Batch([], self.cursor)
            self._advance(records)
            self._last = Batch(records, self.cursor, self._gaps)
            self._gaps = []
            return self._last

    async def _take(self, timeout_s: float) -> list[bytes]:
        if self._backlog:
            taken = self._backlog[:MOST_RECORDS]
            del self._backlog[:MOST_RECORDS]
            return taken
        try:
            async with asyncio.timeout(0 if self._gaps else timeout_s):
                while True:
                    taken = self._unseen(await self.outbox.batch(MOST_RECORDS))
                    if taken:
                        return taken
        except TimeoutError:
            return []

    def _unseen(self, records: list[bytes]) -> list[bytes]:
        """Leave out what another hub had remembered already."""
        positions = self.cursor.positions
        return [
            record
            for record in records
            if (place := _place(record))[1] > positions.get(place[0], 0)
        ]

    def _advance(self, records: list[bytes]) -> None:
        positions = dict(self.cursor.positions)
        positions.update(_place(record) for record in records)
        self.cursor = Cursor(
            self.cursor.session, self.cursor.batch + 1, self.cursor.since_ns, positions
        )


def _place(enclosed: bytes) -> tuple[int, int]:
    _, publisher, position, _, _ = HEADER.unpack_from(enclosed, LENGTH.size)
    return publisher, position


class PollSessions:
    """The sessions of one hub. ``PollSessions.of(hub)`` gives them.

    Anything else that can ``subscribe`` and ``unsubscribe`` an outbox will do for ``hub``, and
    anything that can ``recall`` for ``recaller``.
    """

    def __init__(self, hub: Any, recaller: Any) -> None:
        self._hub = hub
        self._recaller = recaller
        self._sessions: dict[str, Session] = {}
        self._sweeper: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, hub: Hub) -> "PollSessions":
        sessions = _registries.get(hub)
        if sessions is None:
            sessions = _registries[hub] = cls(hub, Recaller(hub))
        return sessions

    async def poll(self, topics: frozenset[str], cursor: Cursor | None, timeout_s: float) -> Batch:
        """Return what ``topics`` got after ``cursor``; wait for it ``timeout_s`` at most.

        Without a cursor the answer is empty and comes at once: from its cursor on, nothing is lost.
        No topics are those of the cursor's session; raises ``UnknownSession`` where that is none
        of this process's.
        """
        session = self._sessions.get(cursor.session) if cursor else None
        if not topics and session:
            topics = session.topics
        if not topics:
            raise UnknownSession("name the topics: this process does not know the cursor's session")
        if cursor and session and session.topics == topics and session.knows(cursor):
            try:
                return await session.next(cursor.batch, timeout_s)
            except Ended:
                # It fell behind. The new one asks what is remembered, and as long as the old one
                # is there, the hub has not left the topics.
                renewed = await self._open(topics, cursor)
                await self._end(session)
        else:
            renewed = await self._open(topics, cursor)
        if cursor is None:
            return Batch([], renewed.cursor)
        return await renewed.next(renewed.cursor.batch, timeout_s)

    async def _open(self, topics: frozenset[str], came_from: Cursor | None) -> Session:
        since_ns = came_from.since_ns if came_from else time.time_ns()
        positions = dict(came_from.positions) if came_from else {}
        session = Session(topics, Cursor(secrets.token_hex(8), 0, since_ns, positions))
        await self._hub.subscribe(session.outbox, topics)
        if came_from is None:
            # Only now is the subscription live, and only from now on can another hub vouch for it.
            session.cursor = Cursor(session.cursor.session, 0, time.time_ns(), {})
        else:
            found = await self._recaller.recall(topics, positions, since_ns)
            missed = [
                record.enclosed
                for record in found.in_order()
                if is_newer(record, positions, since_ns)
            ]
            session.prepend(missed, sorted(topics - found.covered))
        self._sessions[session.cursor.session] = session
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep())
        return session

    async def _end(self, session: Session) -> None:
        self._sessions.pop(session.cursor.session, None)
        await self._hub.unsubscribe(session.outbox, session.topics)

    async def _sweep(self) -> None:
        """End the sessions of clients that have not come back; run while there is any."""
        while self._sessions:
            await asyncio.sleep(LEASE_S / 4)
            oldest_s = time.monotonic() - LEASE_S
            for session in list(self._sessions.values()):
                if session.used_s < oldest_s:
                    await self._end(session)
