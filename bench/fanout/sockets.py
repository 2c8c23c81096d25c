"""A subscriber over WebSocket, on picows: its callbacks run in the event loop's read."""

import asyncio
import json
import time
from typing import Any

from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect

from bench.fanout.spec import Spec
from locustfiles.driver.deliveries import Layout, Subscriber, Tally

# The server holds back once this is under way; a client that tells it half-way is never waited for.
TELL_EVERY_BYTES = 512 * 1024
HANDSHAKE_S = 30.0
# What was due when a subscription ended has come by then: a hub's round begins within 0.15 s.
LEAVE_S = 0.3


class Client(WSListener):
    """One socket. ``answer`` is the server's reply to the last request."""

    def __init__(self) -> None:
        self.subscriber: Subscriber | None = None
        self.answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.closed = asyncio.get_running_loop().create_future()
        self.total = self.told = 0
        self.transport: WSTransport | None = None

    def on_ws_connected(self, transport: WSTransport) -> None:
        self.transport = transport

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        kind = frame.msg_type
        if kind == WSMsgType.BINARY:
            payload = frame.get_payload_as_memoryview()
            self.total += len(payload)
            if self.subscriber is not None:
                self.subscriber.take(payload, time.time_ns())
            if self.total - self.told >= TELL_EVERY_BYTES:
                self.told = self.total
                transport.send(WSMsgType.TEXT, b'{"received": %d}' % self.total)
        elif kind == WSMsgType.TEXT:
            self.answers.put_nowait(json.loads(frame.get_payload_as_bytes()))
        elif kind == WSMsgType.CLOSE:
            transport.disconnect()

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the answer; raise ``ConnectionError`` where none comes."""
        assert self.transport is not None
        self.transport.send(WSMsgType.TEXT, json.dumps(request).encode())
        answer = asyncio.ensure_future(self.answers.get())
        await asyncio.wait((answer, self.closed), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            raise ConnectionError("the server closed the socket instead of an answer")
        return answer.result()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.disconnect()


class Sockets:
    """The WebSocket side of the generator: opens, subscribes and closes clients."""

    def __init__(self, spec: Spec, layout: Layout, tally: Tally) -> None:
        self._spec = spec
        self._layout = layout
        self._tally = tally
        self._url = spec.url.replace("http", "ws", 1) + "/ws/topics/"
        self._headers = [("Origin", spec.url)]

    async def open(self) -> Client:
        _, client = await ws_connect(
            Client,
            self._url,
            extra_headers=self._headers,
            websocket_handshake_timeout=HANDSHAKE_S,
            max_frame_size=64 * 1024 * 1024,
        )
        assert isinstance(client, Client)
        return client

    async def subscribe(
        self, client: Client, topics: list[str], *, since_start: bool
    ) -> Subscriber:
        """Subscribe; when this returns the subscription is live."""
        client.subscriber = Subscriber(
            (name.encode() for name in topics), self._layout, self._tally, since_start=since_start
        )
        answer = await client.ask({"subscribe": topics, "id": 1})
        if answer != {"subscribed": len(topics), "id": 1}:
            raise ConnectionError(f"the server answers a subscription with {answer}")
        return client.subscriber

    async def leave(self, client: Client, topics: list[str]) -> None:
        """Unsubscribe, take what was due by then, and go: so everything is accounted for."""
        answer = await client.ask({"unsubscribe": topics, "id": 2})
        if answer != {"unsubscribed": len(topics), "id": 2}:
            raise ConnectionError(f"the server answers the end of a subscription with {answer}")
        await asyncio.sleep(LEAVE_S)
        client.close()
