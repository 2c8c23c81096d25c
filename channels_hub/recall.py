"""What other processes remember, for a client that came from one of them."""

import asyncio
import contextlib
import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from channels_hub.history import Remembered
from channels_hub.hub import HUBS, Hub

# How long to wait for hubs that may not exist. Reached only where a topic is covered by nobody.
PATIENCE_S = 0.5
CHUNK_BYTES = 256 * 1024


@dataclass
class Recollection:
    """What the hubs together remember after a cursor, and which topics one of them covers."""

    records: dict[tuple[int, int], Remembered] = field(default_factory=dict)
    covered: set[str] = field(default_factory=set)

    def in_order(self) -> list[Remembered]:
        """Return the records, each publisher's in the order it published them."""
        return [self.records[key] for key in sorted(self.records)]


class Recaller:
    """Asks all hubs, this process's own among them, and answers when one of them asks."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._requests = itertools.count(1)
        self._open: dict[int, asyncio.Queue[dict[str, Any]]] = {}
        hub.handlers["hub.recall"] = self._answer
        hub.handlers["hub.recalled"] = self._take

    async def recall(
        self, topics: Collection[str], positions: Mapping[int, int], since_ns: int
    ) -> Recollection:
        """Return what is remembered of ``topics`` after ``positions`` (see ``History``)."""
        request = next(self._requests)
        answers = self._open[request] = asyncio.Queue()
        found = Recollection()
        try:
            question = {
                "type": "hub.recall",
                "reply_to": self._hub.channel,
                "request": request,
                "topics": list(topics),
                # As pairs: not every layer carries a map whose keys are numbers.
                "positions": [list(pair) for pair in positions.items()],
                "since_ns": since_ns,
            }
            await self._hub.layer.group_send(HUBS, question)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._collect(answers, set(topics), found)
        finally:
            del self._open[request]
        return found

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
        history = self._hub.history
        positions = dict(message["positions"])
        since_ns = message["since_ns"]
        covers = [
            topic for topic in message["topics"] if history.covers(topic, positions, since_ns)
        ]
        chunks = list(divide(history.after(message["topics"], positions, since_ns))) or [[]]
        for number, records in enumerate(chunks, 1):
            last = number == len(chunks)
            answer = {
                "type": "hub.recalled",
                "request": message["request"],
                "records": [list(record) for record in records],
                "chunks": number if last else None,
                "covers": covers if last else [],
            }
            await self._hub.reply(message, answer)

    async def _take(self, message: dict[str, Any]) -> None:
        # An answer that came too late has nobody to take it.
        if answers := self._open.get(message["request"]):
            answers.put_nowait(message)


def divide(records: list[Remembered]) -> Iterator[list[Remembered]]:
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
