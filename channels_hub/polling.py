"""Long polling: the same feed as the socket's, one batch a request.

Between two polls a session keeps the client's outbox in the process. The cursor numbers the
batches, so a batch whose answer was lost on the way is given again, and one that arrived is not. A
process that does not know the session, because the client was sent elsewhere or the lease ended,
starts a new one at the cursor's positions: it gives what its hub remembers, asks the other hubs
where that is not enough, and names each topic for which nobody can vouch as a gap.
"""

import asyncio
import secrets
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from channels_hub.cursor import Cursor
from channels_hub.history import Remembered, is_newer, newest
from channels_hub.hub import Hub
from channels_hub.outbox import CLOSE, Ended, Outbox, fitting
from channels_hub.records import HEADER, LENGTH

LEASE_S = 60.0
MOST_RECORDS = 1_000  # an answer
MOST_BYTES = 1_000_000  # the same; a record that is larger by itself is given all the same
OUTBOX_LIMIT = 10_000
MOST_SESSIONS = 10_000
TOPIC_AT = LENGTH.size + HEADER.size
# What was published so long before a topic was live here has come by then, to whoever listened.
ON_THE_WAY_NS = 5_000_000_000
BACKLOG_BYTES = 64 * 1024 * 1024  # of recalled records that wait for their clients, in all


class UnknownSession(LookupError):  # noqa: N818 - the client can help: an outcome, not a fault
    """The topics were left out, and this process does not know them."""


class TooManySessions(RuntimeError):  # noqa: N818 - an outcome: it passes with the leases
    """This process keeps as many clients' places as it may."""


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
        self.live_ns = 0  # when its topics were joined here, where it came from elsewhere
        self.backlog_bytes = 0
        self._backlog: list[bytes] = []
        self._gaps: list[str] = []
        self._last: Batch | None = None
        self._turn = asyncio.Lock()
        # The last positions of what the client had when it came, by publisher, and of what it was
        # given out of hubs' memory, by publisher and topic.
        self._had = cursor.positions
        self._recalled: dict[tuple[int, str], int] = {}

    def resume(self, recalled: Iterable[Remembered], gaps: Collection[str]) -> None:
        """Take in what hubs remembered, in order, with what has come meanwhile in its place.

        The cursor has one number a publisher, for all topics. So nothing may come later that lies
        before something given now: of one topic a hub may remember more than another hub does of
        another, and what is between the two has come to the outbox by now (see ``Recaller``).
        """
        found = {}
        for one in recalled:
            found[one.publisher, one.position] = one.enclosed
            self._recalled[one.publisher, one.topic] = one.position
        found |= {_place(record): record for record in self._unseen(self.outbox.pending)}
        self.outbox.pending.clear()
        self._backlog = [found[place] for place in sorted(found)]
        self.backlog_bytes = sum(map(len, self._backlog))
        try:
            self.outbox.check()
        except Ended:
            gaps = self.topics  # what came meanwhile did not fit
        self._gaps = sorted(gaps)

    def knows(self, cursor: Cursor) -> bool:
        """Whether ``cursor`` is this session's last answer, or the one before."""
        return cursor.session == self.cursor.session and (
            cursor.batch == self.cursor.batch
            or (self._last is not None and cursor.batch == self.cursor.batch - 1)
        )

    async def next(self, batch: int, timeout_s: float) -> Batch:
        """Return the batch after number ``batch``; an empty one if none comes in ``timeout_s``.

        Raises ``Ended`` where more has come than the outbox holds, and where the client has gone
        on from ``batch`` while this waited for its turn.
        """
        until_s = time.monotonic() + timeout_s
        async with self._turn:
            self.used_s = time.monotonic()
            if self._last is not None and batch == self.cursor.batch - 1:
                return self._last
            if batch != self.cursor.batch:
                raise Ended("the client has gone on")
            # A request that waited for an earlier one of its client's waits no longer than it said.
            records = await self._take(max(0.0, until_s - time.monotonic()))
            self.used_s = time.monotonic()
            if not records and not self._gaps:
                return Batch([], self.cursor)
            self._advance(records)
            self._last = Batch(records, self.cursor, self._gaps)
            self._gaps = []
            return self._last

    async def _take(self, timeout_s: float) -> list[bytes]:
        if self._backlog or self._gaps:
            taken = self._backlog[:MOST_RECORDS]
            taken = taken[: fitting(taken, MOST_BYTES)]
            del self._backlog[: len(taken)]
            self.backlog_bytes -= sum(map(len, taken))
            return taken
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    batch = await self.outbox.batch(MOST_RECORDS)
                    if taken := self._unseen(self.outbox.shortened(batch, MOST_BYTES)):
                        return taken
        except TimeoutError:
            return []

    def _unseen(self, records: list[bytes]) -> list[bytes]:
        """Leave out what the client has had from another process, or out of a hub's memory."""
        if not self._had and not self._recalled:
            return records
        return [record for record in records if not self._has_had(record)]

    def _has_had(self, enclosed: bytes) -> bool:
        _, publisher, position, _, length = HEADER.unpack_from(enclosed, LENGTH.size)
        topic = enclosed[TOPIC_AT : TOPIC_AT + length].decode()
        had = max(self._had.get(publisher, 0), self._recalled.get((publisher, topic), 0))
        return bool(position <= had)

    def _advance(self, records: list[bytes]) -> None:
        positions = dict(self.cursor.positions)
        for publisher, position in map(_place, records):
            if position > positions.get(publisher, 0):  # all but one that came late
                positions[publisher] = position
        since_ns = self.cursor.since_ns
        if not self._backlog:
            # All of before is given, or named: the next process need not vouch for it again. This
            # one can, by itself, as soon as all of before must have come.
            come = not self.outbox.pending and time.time_ns() - self.live_ns > ON_THE_WAY_NS
            since_ns = max(since_ns, self.live_ns if come else self.live_ns - ON_THE_WAY_NS)
        self.cursor = Cursor(self.cursor.session, self.cursor.batch + 1, since_ns, positions)


def _place(enclosed: bytes) -> tuple[int, int]:
    _, publisher, position, _, _ = HEADER.unpack_from(enclosed, LENGTH.size)
    return publisher, position


class PollSessions:
    """The sessions of one hub. ``PollSessions.of(hub)`` gives them.

    Anything else that can ``subscribe`` an outbox and ``part`` with it will do for ``hub``, and
    anything that can ``recall`` for ``recaller``.
    """

    def __init__(self, hub: Any, recaller: Any) -> None:
        self._hub = hub
        self._recaller = recaller
        self._sessions: dict[str, Session] = {}
        self._sweeper: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, hub: Hub) -> "PollSessions":
        sessions: PollSessions | None = hub.polls
        if sessions is None:
            sessions = hub.polls = cls(hub, hub.recaller)
        return sessions

    async def poll(self, topics: frozenset[str], cursor: Cursor | None, timeout_s: float) -> Batch:
        """Return what ``topics`` got after ``cursor``; wait for it ``timeout_s`` at most.

        Without a cursor the answer is empty and comes at once: from its cursor on, nothing is lost.
        No topics are those of the cursor's session; raises ``UnknownSession`` where that is none
        of this process's. Raises ``TooManySessions`` where it would need one more than there may
        be, and ``Ended`` where no hub serves it.
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
                pass  # It fell behind. The new one asks what is remembered.
        renewed = await self._open(topics, cursor, session)
        if cursor is None:
            return Batch([], renewed.cursor)
        return await renewed.next(renewed.cursor.batch, timeout_s)

    async def _open(
        self, topics: frozenset[str], came_from: Cursor | None, instead: Session | None
    ) -> Session:
        if len(self._sessions) - (instead is not None) >= MOST_SESSIONS:
            raise TooManySessions(f"{MOST_SESSIONS} clients poll here: try again in {LEASE_S:g} s")
        since_ns = came_from.since_ns if came_from else time.time_ns()
        positions = dict(came_from.positions) if came_from else {}
        session = Session(topics, Cursor(secrets.token_hex(8), 0, since_ns, positions))
        self._sessions[session.cursor.session] = session
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep())
        try:
            await self._hub.subscribe(session.outbox, topics)
            if came_from is None:
                # Only now is the subscription live, and only from now on can another hub vouch.
                session.cursor = Cursor(session.cursor.session, 0, time.time_ns(), {})
            else:
                session.live_ns = time.time_ns()
                await self._recall(session)
        except BaseException:
            await self._end(session)
            raise
        if instead:
            # Only now: as long as it was there, the hub did not leave the topics.
            await self._end(instead)
        return session

    async def _recall(self, session: Session) -> None:
        """Ask what the client has missed; what finds no room here is a gap."""
        topics, cursor = session.topics, session.cursor
        found = await self._recaller.recall(topics, cursor.positions, cursor.since_ns)
        missed = [
            record
            for record in found.in_order()
            if is_newer(record, cursor.positions, cursor.since_ns)
        ]
        held_bytes = sum(one.backlog_bytes for one in self._sessions.values())
        kept, cut = newest(missed, BACKLOG_BYTES - held_bytes)
        session.resume(kept, topics - found.covered | cut)

    async def _end(self, session: Session) -> None:
        if self._sessions.pop(session.cursor.session, None):
            session.outbox.end("another poll has taken its place")
            await self._hub.part(session.outbox, session.topics)

    async def _sweep(self) -> None:
        """End the sessions of clients that have not come back; run while there is any."""
        while self._sessions:
            await asyncio.sleep(LEASE_S / 4)
            oldest_s = time.monotonic() - LEASE_S
            for session in list(self._sessions.values()):
                if session.used_s < oldest_s:
                    await self._end(session)
