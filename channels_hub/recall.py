"""What other processes remember, for a client that came from one of them."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from channels_hub.history import Remembered, newest

if TYPE_CHECKING:
    from channels_hub.hub import Hub

# How long to wait for hubs that may not exist. Reached only where a topic is covered by nobody.
PATIENCE_S = 0.5
# How long a publisher may take from when it stamps a record until it has reached every process that
# wanted it then. What it stamped before a topic was joined here comes to the others only, and they
# are not asked before they must have it.
SETTLE_S = 0.25
CHUNK_BYTES = 256 * 1024
# One hub's answer at most: more than an outbox of 10,000 records of one KiB, so that a client who
# fell behind can be caught up; and the answers of four hubs fit into what channels_ipc spools for
# the process that asked.
ANSWER_BYTES = 12 * 1024 * 1024
HELD_BYTES = 64 * 1024 * 1024  # of answers, in a process, until their questions are done with


@dataclass
class Recollection:
    """What the hubs together remember after a cursor, and which topics one of them covers."""

    records: dict[tuple[int, int], Remembered] = field(default_factory=dict)
    covered: set[str] = field(default_factory=set)

    def in_order(self) -> list[Remembered]:
        """Return the records, each publisher's in the order it published them."""
        return [self.records[key] for key in sorted(self.records)]


@dataclass
class Question:
    """One that is still open, and the answers to it that nobody has looked at yet."""

    answers: "asyncio.Queue[dict[str, Any]]" = field(default_factory=asyncio.Queue)
    size_bytes: int = 0


class Recaller:
    """Knows what its own hub remembers, asks the others, and answers when one of them asks.

    When ``recall`` returns, the asking hub has taken off its channel whatever was published before
    the newest record that it returns: a channel is first in, first out, and the hub that answered
    had that record before it answered. What the asking hub took off before then, and the other only
    after its answer, is in what is returned: its own history is looked at last.
    """

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._requests = itertools.count(1)
        self._open: dict[int, Question] = {}
        self._held_bytes = 0
        hub.handlers["hub.recall"] = self._answer
        hub.handlers["hub.recalled"] = self._take

    async def recall(
        self, topics: Collection[str], positions: Mapping[int, int], since_ns: int
    ) -> Recollection:
        """Return what is remembered of ``topics`` after ``positions`` (see ``History``).

        The caller must not wait between this and taking over from it: what comes meanwhile is not
        in it.
        """
        history = self._hub.history
        found = Recollection()
        if missing := set(topics) - history.covered(topics, positions, since_ns):
            settled_s = history.started_ns(missing) / 1e9 + SETTLE_S
            await asyncio.sleep(max(0.0, min(SETTLE_S, settled_s - time.time())))
            await self._ask(missing, positions, since_ns, found)
        for record in history.after(topics, positions, since_ns):
            found.records[record.publisher, record.position] = record
        found.covered |= history.covered(topics, positions, since_ns)
        return found

    async def _ask(
        self,
        topics: set[str],
        positions: Mapping[int, int],
        since_ns: int,
        found: Recollection,
    ) -> None:
        request = next(self._requests)
        question = self._open[request] = Question()
        try:
            asked = {
                "type": "hub.recall",
                "request": request,
                "topics": list(topics),
                # As pairs: not every layer carries a map whose keys are numbers.
                "positions": [list(pair) for pair in positions.items()],
                "since_ns": since_ns,
            }
            await self._hub.ask_all(asked)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._collect(question.answers, topics, found)
        finally:
            del self._open[request]
            self._held_bytes -= question.size_bytes

    async def _collect(
        self, answers: "asyncio.Queue[dict[str, Any]]", topics: set[str], found: Recollection
    ) -> None:
        chunks: dict[str, int] = {}
        while not topics <= found.covered:
            answer = await answers.get()
            for row in answer["records"]:
                record = Remembered(*row)
                found.records[record.publisher, record.position] = record
            hub = answer["hub"]
            chunks[hub] = chunks.get(hub, 0) + 1
            # The last chunk says how many there are: a dropped one is a hole, and covers nothing.
            if answer["chunks"] == chunks[hub]:
                found.covered.update(answer["covers"])

    async def _answer(self, message: dict[str, Any]) -> None:
        if message["reply_to"] == self._hub.channel:
            return  # its own question: it knows the answer
        history = self._hub.history
        positions = dict(message["positions"])
        since_ns = message["since_ns"]
        after = history.after(message["topics"], positions, since_ns)
        given, cut = newest(after, ANSWER_BYTES)
        covers = history.covered(set(message["topics"]) - cut, positions, since_ns)
        chunks = list(divide(given)) or [[]]
        for number, records in enumerate(chunks, 1):
            last = number == len(chunks)
            answer = {
                "type": "hub.recalled",
                "request": message["request"],
                "records": [list(record) for record in records],
                "chunks": number if last else None,
                "covers": list(covers) if last else [],
            }
            await self._hub.reply(message, answer)

    async def _take(self, message: dict[str, Any]) -> None:
        question = self._open.get(message["request"])
        if question is None:
            return  # it came too late
        size_bytes = sum(len(record[-1]) for record in message["records"])
        if self._held_bytes + size_bytes > HELD_BYTES:
            return  # as if the layer had dropped it
        self._held_bytes += size_bytes
        question.size_bytes += size_bytes
        question.answers.put_nowait(message)


def divide(records: Sequence[Remembered]) -> Iterator[list[Remembered]]:
    """Yield ``records`` in portions of about ``CHUNK_BYTES``."""
    portion: list[Remembered] = []
    size = 0
    for record in records:
        portion.append(record)
        size += len(record.enclosed)
        if size >= CHUNK_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
