"""``/ws/topics/``: a client names topics, and receives their messages in batches.

The client sends JSON text, one object a message::

    {"subscribe": ["a", "b"], "id": 1}    answered {"subscribed": 2, "id": 1} once that is live
    {"unsubscribe": ["a"], "id": 2}       answered {"unsubscribed": 1, "id": 2}
    {"received": 123456}                  bytes of frames received so far; not answered

Records come as binary frames (``channels_hub.records``). The server sends no further frame while
``WINDOW_BYTES`` or more of what it sent are not yet said to have been received; the rest waits in
the client's outbox, which is bounded. So memory is bounded on every server, whether or not that
server makes a sender wait for the network, and a client that never says what it received stops
after one window.

A message that cannot be understood is answered ``{"error": "...", "id": ...}`` and changes nothing;
the socket stays usable, but ``MOST_ERRORS`` of them in a row close it with 4008: the answers pass
the window by, and who never reads them must not grow the server. The server closes with 4013 where
the client fell behind and its policy is to be closed, and with 4011 where the hub has stopped:
the application's own codes for what 1008 (policy violation), 1013 (try again later) and 1011
(internal error) say, because Daphne can close with 1000 and 3000 to 4999 only.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterator
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer

from channels_hub.hub import Hub
from channels_hub.outbox import DROP_OLDEST, Ended, Outbox, Overflow
from channels_hub.records import TopicError, check_topic
from channels_hub.threadless import Threadless

logger = logging.getLogger("channels_hub")

LARGEST_REQUEST = 4 * 1024 * 1024  # characters
MOST_TOPICS = 100_000  # per socket
MOST_ERRORS = 100  # in a row
LONGEST_ID = 100  # characters, of the client's own name for a request

# Close codes.
MISUSED = 4008
LAYER_FAILED = 4011
FELL_BEHIND = 4013


class RequestError(ValueError):
    """A client's message that cannot be carried out; the text is for the client."""


class LayerFailed(Exception):  # noqa: N818 - an outcome to act on
    """A topic could not be joined, or left."""


@contextlib.contextmanager
def layer_failures() -> Iterator[None]:
    """Raise ``LayerFailed`` for whatever is not said to the client."""
    try:
        yield
    except (RequestError, TopicError):
        raise
    except Exception as error:
        raise LayerFailed(str(error)) from error


def parse(text: str | None) -> dict[str, Any]:
    """Return the request in ``text``; raise ``RequestError`` that says what is wrong with it."""
    if text is None:
        raise RequestError("requests are text, not binary")
    if len(text) > LARGEST_REQUEST:
        raise RequestError(f"{len(text)} characters are more than the {LARGEST_REQUEST} allowed")
    try:
        request = json.loads(text)
    except ValueError as error:
        raise RequestError(f"this is not JSON: {error}") from error
    except RecursionError as error:
        raise RequestError("this JSON is nested too deeply") from error
    if not isinstance(request, dict):
        raise RequestError("a request is a JSON object")
    name = request.get("id")
    if isinstance(name, list | dict) or len(str(name)) > LONGEST_ID:
        raise RequestError(f"an id is a number or at most {LONGEST_ID} characters")
    verbs = [verb for verb in ("subscribe", "unsubscribe", "received") if verb in request]
    if len(verbs) != 1:
        raise RequestError("a request holds one of subscribe, unsubscribe, received")
    return request


def parse_topics(topics: object) -> list[str]:
    """Return the topics that a request names; raise ``RequestError`` or ``TopicError``."""
    if not isinstance(topics, list):
        raise RequestError("topics come as a list of names")
    if len(topics) > MOST_TOPICS:
        raise RequestError(f"{len(topics)} topics are more than the {MOST_TOPICS} allowed a socket")
    return [check_topic(topic) for topic in topics]


class TopicsConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels publishes no types
    """Subscribes to topics for one client. Delivery is the subclass's: hub, or group."""

    errors = 0  # in a row

    async def __call__(self, *arguments: Any) -> None:
        self.topics: set[str] = set()
        try:
            await super().__call__(*arguments)
        finally:
            # Not in disconnect(): Channels does not come to it where a handler fails, as sending
            # does when the client has gone before its answer.
            await self.leave()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.errors == MOST_ERRORS:
            return  # it is being closed
        request: dict[str, Any] = {}
        try:
            request = parse(text_data)
            await self.answer(request)
            self.errors = 0
        except (RequestError, TopicError) as error:
            self.errors += 1
            if self.errors == MOST_ERRORS:
                await self.close(code=MISUSED)
            else:
                await self.reply({"error": str(error)}, request)
        except LayerFailed:
            logger.exception("a client is closed: the channel layer failed")
            await self.close(code=LAYER_FAILED)

    async def answer(self, request: dict[str, Any]) -> None:
        if "subscribe" in request:
            new = set(parse_topics(request["subscribe"])) - self.topics
            if len(self.topics) + len(new) > MOST_TOPICS:
                raise RequestError(f"a socket may have {MOST_TOPICS} topics")
            self.topics |= new  # from now on, so that who goes meanwhile leaves them, too
            try:
                with layer_failures():
                    await self.subscribe(new)
            except (RequestError, TopicError):
                self.topics -= new
                raise
            await self.reply({"subscribed": len(new)}, request)
        elif "unsubscribe" in request:
            gone = self.topics.intersection(parse_topics(request["unsubscribe"]))
            self.topics -= gone
            with layer_failures():
                await self.unsubscribe(gone)
            await self.reply({"unsubscribed": len(gone)}, request)
        else:
            self.note_received(request["received"])

    async def reply(self, answer: dict[str, Any], request: dict[str, Any]) -> None:
        if "id" in request:
            answer["id"] = request["id"]
        await self.send(text_data=json.dumps(answer))

    async def leave(self) -> None:
        """Give up what this client has: it has gone."""
        await self.unsubscribe(self.topics)

    async def subscribe(self, topics: set[str]) -> None:
        """Make ``topics`` live; raise ``RequestError`` where this client may not have them."""
        raise NotImplementedError

    async def unsubscribe(self, topics: set[str]) -> None:
        raise NotImplementedError

    def note_received(self, total_bytes: object) -> None:
        """Take note of the client's count; a delivery that has no window has no use for it."""


class HubTopicsConsumer(TopicsConsumer, Threadless):
    """Delivers through the process's hub: what is due to the socket goes out as one frame."""

    # A socket that has a hub needs no channel of its own: without a layer of this name, Channels
    # makes none, and waits for the client alone.
    channel_layer_alias = "none: the hub has it"

    WINDOW_BYTES = 1024 * 1024
    # A frame. Daphne refuses to send more than a MiB, unless it is told to, and many clients refuse
    # to take it. A record that is larger by itself is sent all the same.
    MOST_RECORDS = 1_000
    MOST_BYTES = 1_000_000
    OUTBOX_LIMIT = 10_000
    POLICY = DROP_OLDEST

    sender: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        self.hub = await Hub.current()
        self.outbox = Outbox(self.OUTBOX_LIMIT, self.POLICY)
        self.sent_bytes = self.received_bytes = 0
        self.window = asyncio.Event()
        self.window.set()
        self.outbox.on_end = self.window.set
        await self.accept()
        self.sender = asyncio.get_running_loop().create_task(self.send_batches())

    async def send_batches(self) -> None:
        try:
            while True:
                if not self.window.is_set():
                    await self.wait_for_window()
                batch = await self.outbox.batch(self.MOST_RECORDS)
                frame = b"".join(batch)
                if len(frame) > self.MOST_BYTES:
                    frame = b"".join(self.outbox.shortened(batch, self.MOST_BYTES))
                self.sent_bytes += len(frame)
                self.move_window()
                await self.send(bytes_data=frame)
        except Overflow:
            await self.close(code=FELL_BEHIND)
        except Ended:
            await self.close(code=LAYER_FAILED)
        except OSError:
            raise  # so servers say that the client has gone
        except Exception:
            # A client must not take silence for quiet, whatever it is.
            logger.exception("a client is closed: it cannot be sent what it is due")
            await self.close(code=LAYER_FAILED)

    async def wait_for_window(self) -> None:
        """Wait for the client to say what it received; raise ``Ended`` where the outbox ends."""
        self.outbox.check()
        await self.window.wait()
        self.outbox.check()

    def note_received(self, total_bytes: object) -> None:
        if not isinstance(total_bytes, int) or not 0 <= total_bytes <= self.sent_bytes:
            raise RequestError(f"received is no count of the {self.sent_bytes} bytes sent")
        self.received_bytes = max(self.received_bytes, total_bytes)
        self.move_window()

    def move_window(self) -> None:
        if self.sent_bytes - self.received_bytes < self.WINDOW_BYTES:
            self.window.set()
        else:
            self.window.clear()

    async def subscribe(self, topics: set[str]) -> None:
        await self.hub.subscribe(self.outbox, topics)

    async def unsubscribe(self, topics: set[str]) -> None:
        await self.hub.unsubscribe(self.outbox, topics)

    async def close(self, code: int | None = None, reason: str | None = None) -> None:
        # No frame may follow a close.
        if self.sender is not None and self.sender is not asyncio.current_task():
            self.sender.cancel()
        await super().close(code, reason)

    async def leave(self) -> None:
        if self.sender is None:
            return  # it never was connected
        try:
            self.sender.cancel()
            # With an OSError a server says that the client has gone: what is known by now.
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await self.sender
        finally:
            # Whatever the sender died of: a client that has left must leave the hub.
            await self.hub.part(self.outbox, self.topics)
