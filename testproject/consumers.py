"""The consumers: what Channels serves in the server's own process."""

import json
import os

from channels.generic.http import AsyncHttpConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from testproject import http_message, relay

# 1013 says this, but Daphne can close with 1000 and 3000 to 4999 only: another code raises, and the
# client sees 1011. 4000 and up are an application's own.
TRY_AGAIN_LATER = 4013


def server_pid() -> tuple[bytes, bytes]:
    """Return the header that says which process answered; asked each time, for servers fork."""
    return b"X-Server-Pid", b"%d" % os.getpid()


def worker_header(pid: int) -> tuple[bytes, bytes]:
    """Return the header that says which worker ran the request."""
    return b"X-Worker-Pid", b"%d" % pid


class HelloConsumer(AsyncHttpConsumer):
    """Answers what the view of ``/`` answers, without Django's request and response."""

    async def handle(self, body):
        if self.scope["method"] not in ("GET", "HEAD"):
            await self.send_response(405, b"", headers=[(b"Allow", b"GET, HEAD")])
            return
        headers = [(b"Content-Type", b"text/plain"), (b"Content-Length", b"2")]
        await self.send_response(200, b"OK", headers=headers)


class RelayConsumer(AsyncHttpConsumer):
    """Has a worker run Django: ``/relay/<path>`` is the view of ``/<path>``, seen below /relay."""

    async def __call__(self, scope, receive, send):
        """Read the request and handle it, without the tasks that wait for anything else.

        A consumer is an ASGI application. The inherited one also waits for messages on a channel
        of its own, and tidies database connections up in another thread; this one has neither.
        """
        self.scope, self.base_send = scope, send
        try:
            await self.handle(await read_body(receive, settings.DATA_UPLOAD_MAX_MEMORY_SIZE))
        except relay.RelayError as error:
            await self.send_error(error)
        except Disconnected:
            pass  # nobody is left to answer

    async def handle(self, body):
        request = http_message.request_message(self.scope, "/relay", body)
        reply = await relay.current().call("http", request)
        await self.send_reply(reply["content"], reply["worker_pid"])

    async def send_reply(self, content, worker_pid):
        headers = http_message.response_headers(content)
        headers += [server_pid(), worker_header(worker_pid)]
        await self.send_response(content["status"], content["body"], headers=headers)

    async def send_error(self, error):
        headers = [(b"Content-Type", b"text/plain"), server_pid()]
        await self.send_response(error.status, f"{error}\n".encode(), headers=headers)


class Disconnected(Exception):  # noqa: N818 - it is none
    """The client has gone before its request was complete."""


async def read_body(receive, limit):
    """Return the request's body; raise ``TooLarge`` beyond ``limit`` bytes."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if limit is not None and size > limit:
            raise relay.TooLarge("The request's body is too large to be relayed.")
        more = message.get("more_body", False)
    return b"".join(parts)


class EchoConsumer(AsyncWebsocketConsumer):
    """Gives every message back, text as text and bytes as bytes."""

    async def connect(self):
        await accept(self, {"server_pid": os.getpid()})

    async def receive(self, text_data=None, bytes_data=None):
        await self.send(text_data=text_data, bytes_data=bytes_data)


class RoomConsumer(AsyncWebsocketConsumer):
    """Gives every message to everybody in the room, the sender included."""

    async def connect(self):
        self.room = "room." + self.scope["url_route"]["kwargs"]["name"]
        await self.channel_layer.group_add(self.room, self.channel_name)
        await accept(self, {"server_pid": os.getpid()})

    async def receive(self, text_data=None, bytes_data=None):
        await self.channel_layer.group_send(
            self.room, {"type": "room.message", "text": text_data, "bytes": bytes_data}
        )

    async def room_message(self, message):
        await self.send(text_data=message["text"], bytes_data=message["bytes"])

    async def disconnect(self, code):
        await self.channel_layer.group_discard(self.room, self.channel_name)


class RelayEchoConsumer(AsyncWebsocketConsumer):
    """Gives every message back, each by way of a worker.

    One message at a time, so that replies keep their order however many workers there are.
    """

    async def connect(self):
        try:
            reply = await relay.current().call("echo", "")
        except relay.RelayError as error:
            await refuse(self, error.status, str(error))
        else:
            pids = {"server_pid": os.getpid(), "worker_pid": reply["worker_pid"]}
            await accept(self, pids)

    async def receive(self, text_data=None, bytes_data=None):
        message = bytes_data if text_data is None else text_data
        try:
            reply = await relay.current().call("echo", message)
        except relay.RelayError as error:
            await self.close(code=TRY_AGAIN_LATER, reason=str(error))
            return
        back = reply["content"]
        await self.send(**{"text_data" if isinstance(back, str) else "bytes_data": back})


class NoSuchSocket(AsyncWebsocketConsumer):
    """Refuses the handshake: without a last route, ``URLRouter`` raises and the server logs it."""

    async def connect(self):
        await refuse(self, 404, "There is no WebSocket here.")


async def accept(consumer, pids):
    """Accept the handshake, and say which processes serve.

    They stand in its headers, and where the query is ``pids`` also in a first message, as JSON:
    Daphne and Granian send no headers with a handshake.
    """
    headers = [
        (f"X-{name.replace('_', '-').title()}".encode(), b"%d" % pids[name]) for name in pids
    ]
    await consumer.accept(headers=headers)
    if consumer.scope["query_string"] == b"pids":
        await consumer.send(text_data=json.dumps(pids))


async def refuse(consumer, status, text):
    """Refuse the handshake: with the reason where the server can say one, else with 403."""
    if "websocket.http.response" not in consumer.scope.get("extensions", {}):
        await consumer.close()
        return
    headers = [(b"content-type", b"text/plain")]
    start = {"type": "websocket.http.response.start", "status": status, "headers": headers}
    await consumer.base_send(start)
    await consumer.base_send({"type": "websocket.http.response.body", "body": f"{text}\n".encode()})
