"""``/poll/``: the feed by long polling.

``GET /poll/?topic=a&topic=b&cursor=...&timeout=25``, or ``POST`` with the same as a JSON object
(``{"topics": [...], "cursor": "...", "timeout": 25}``) where the topics are too many for a URL. The
first poll has no cursor and is answered at once; from the cursor it gives, nothing is lost. A later
one may leave the topics out: where the process that gets it does not know them, because the last
one answered from elsewhere or long ago, it says 409 and the client names them again.

The answer is JSON: ``{"cursor": "...", "gaps": ["a"], "messages": [{"topic", "publisher",
"position", "sequence", "timestamp_ns", "body"}]}``, the body in base64. With ``Accept:
application/octet-stream`` it is the frame that a socket would get (``channels_hub.records``), with
``X-Cursor`` and ``X-Gaps`` as headers (a JSON list; ``*``, for all, where it is too long for one).

What cannot be answered is ``{"error": "..."}``: 400 a poll that makes no sense, 413 one of more
than 4 MiB, 503 one for which there is no room, or no channel layer, at the moment.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from channels.exceptions import StopConsumer
from channels.generic.http import AsyncHttpConsumer

from channels_hub.cursor import Cursor, CursorError
from channels_hub.cursor import parse as parse_cursor
from channels_hub.hub import Hub
from channels_hub.outbox import Ended
from channels_hub.polling import Batch, PollSessions, TooManySessions, UnknownSession
from channels_hub.records import LENGTH, TopicError, check_topic, unpack
from channels_hub.threadless import Threadless

LONGEST_TIMEOUT_S = 25.0  # below the 30 s after which many a proxy gives up
MOST_TOPICS = 10_000
LONGEST_HEADER = 4_096
LARGEST_BODY = 4 * 1024 * 1024  # bytes: all topics and a cursor are less than a quarter of it


class PollError(ValueError):
    """A request that cannot be answered; the text is for the client."""


@dataclass(frozen=True)
class Poll:
    """What a client asks for."""

    topics: frozenset[str]
    cursor: Cursor | None
    timeout_s: float


def parse_poll(method: str, query: bytes, body: bytes) -> Poll:
    """Return the poll in a request; raise ``PollError`` that says what is wrong with it."""
    try:
        asked = _from_body(body) if method == "POST" else _from_query(query)
        topics = frozenset(check_topic(topic) for topic in asked["topics"])
        cursor = parse_cursor(asked["cursor"]) if asked.get("cursor") else None
        timeout_s = float(asked.get("timeout", LONGEST_TIMEOUT_S))
    except (TopicError, CursorError, PollError) as error:
        raise PollError(str(error)) from error
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise PollError(f"the poll cannot be understood: {error!r}") from error
    if len(topics) > MOST_TOPICS or not (topics or cursor):
        raise PollError(f"a poll names 1 to {MOST_TOPICS} topics, and not {len(topics)}")
    if not 0 <= timeout_s <= LONGEST_TIMEOUT_S:
        raise PollError(f"a poll waits for 0 to {LONGEST_TIMEOUT_S:g} s, and not {timeout_s:g}")
    return Poll(topics, cursor, timeout_s)


def _from_query(query: bytes) -> dict[str, Any]:
    fields = parse_qs(query.decode("latin1"), max_num_fields=MOST_TOPICS + 2)
    asked: dict[str, Any] = {name: values[-1] for name, values in fields.items()}
    return {**asked, "topics": fields.get("topic", [])}


def _from_body(body: bytes) -> dict[str, Any]:
    asked = json.loads(body)
    if not isinstance(asked, dict) or not isinstance(asked.setdefault("topics", []), list):
        raise PollError('the body of a poll is a JSON object such as {"topics": ["a"]}')
    return asked


def as_json(batch: Batch) -> bytes:
    """Return the answer for a client that reads JSON."""
    messages = []
    for enclosed in batch.records:
        record = unpack(enclosed[LENGTH.size :])
        messages.append(
            {
                "topic": record.topic,
                "publisher": record.publisher,
                "position": record.position,
                "sequence": record.sequence,
                "timestamp_ns": record.timestamp_ns,
                "body": base64.b64encode(record.body).decode(),
            }
        )
    answer = {"cursor": str(batch.cursor), "gaps": batch.gaps, "messages": messages}
    return json.dumps(answer, separators=(",", ":")).encode()


def gaps_header(gaps: list[str]) -> bytes:
    """Return what ``X-Gaps`` says."""
    text = json.dumps(gaps).encode()
    return text if len(text) <= LONGEST_HEADER else b"*"


class PollConsumer(AsyncHttpConsumer, Threadless):  # type: ignore[misc]  # it has no types
    """Answers one poll."""

    channel_layer_alias = "none: the hub has it"
    body_bytes = 0

    async def http_request(self, message: dict[str, Any]) -> None:
        self.body_bytes += len(message.get("body", b""))
        if self.body_bytes > LARGEST_BODY:
            await self.refuse(413, f"a poll of more than {LARGEST_BODY} bytes is not read")
            raise StopConsumer
        await super().http_request(message)

    async def handle(self, body: bytes) -> None:
        method = self.scope["method"]
        if method not in ("GET", "POST"):
            await self.send_response(405, b"", headers=[(b"Allow", b"GET, POST")])
            return
        try:
            poll = parse_poll(method, self.scope["query_string"], body)
            await self.check(poll.topics)
        except PollError as error:
            await self.refuse(400, str(error))
            return
        sessions = await self.sessions()
        try:
            batch = await sessions.poll(poll.topics, poll.cursor, poll.timeout_s)
        except UnknownSession as unknown:
            await self.refuse(409, str(unknown))
        except (TooManySessions, Ended) as reason:
            await self.refuse(503, str(reason))
        else:
            await self.give(batch)

    async def check(self, topics: frozenset[str]) -> None:
        """Raise ``PollError`` where this client may not have one of ``topics``, those it names.

        It names none where it goes on with those of its cursor.
        """

    async def give(self, batch: Batch) -> None:
        if (b"accept", b"application/octet-stream") in self.scope["headers"]:
            frame = b"".join(batch.records)
            headers = [
                (b"Content-Type", b"application/octet-stream"),
                (b"Content-Length", b"%d" % len(frame)),
                (b"Cache-Control", b"no-store"),
                (b"X-Cursor", str(batch.cursor).encode()),
                (b"X-Gaps", gaps_header(batch.gaps)),
            ]
            await self.send_response(200, frame, headers=headers)
        else:
            await self.send_json(200, as_json(batch))

    async def refuse(self, status: int, why: str) -> None:
        await self.send_json(status, json.dumps({"error": why}).encode())

    async def sessions(self) -> PollSessions:
        return PollSessions.of(await Hub.current())

    async def send_json(self, status: int, body: bytes) -> None:
        headers = [
            (b"Content-Type", b"application/json"),
            (b"Content-Length", b"%d" % len(body)),
            (b"Cache-Control", b"no-store"),
        ]
        await self.send_response(status, body, headers=headers)
