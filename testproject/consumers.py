"""The consumers: what Channels serves in the server's own process."""

import os

from channels.generic.http import AsyncHttpConsumer
from channels.generic.websocket import AsyncWebsocketConsumer


def server_pid() -> tuple[bytes, bytes]:
    """Return the header that says which process answered; asked each time, for servers fork."""
    return b"X-Server-Pid", b"%d" % os.getpid()


class HelloConsumer(AsyncHttpConsumer):
    """Answers what the view of ``/`` answers, without Django's request and response."""

    async def handle(self, body):
        if self.scope["method"] not in ("GET", "HEAD"):
            await self.send_response(405, b"", headers=[(b"Allow", b"GET, HEAD")])
            return
        headers = [(b"Content-Type", b"text/plain"), (b"Content-Length", b"2")]
        await self.send_response(200, b"OK", headers=headers)


class EchoConsumer(AsyncWebsocketConsumer):
    """Gives every message back, text as text and bytes as bytes."""

    async def connect(self):
        await self.accept(headers=[server_pid()])

    async def receive(self, text_data=None, bytes_data=None):
        await self.send(text_data=text_data, bytes_data=bytes_data)


class RoomConsumer(AsyncWebsocketConsumer):
    """Gives every message to everybody in the room, the sender included."""

    async def connect(self):
        self.room = "room." + self.scope["url_route"]["kwargs"]["name"]
        await self.channel_layer.group_add(self.room, self.channel_name)
        await self.accept(headers=[server_pid()])

    async def receive(self, text_data=None, bytes_data=None):
        await self.channel_layer.group_send(
            self.room, {"type": "room.message", "text": text_data, "bytes": bytes_data}
        )

    async def room_message(self, message):
        await self.send(text_data=message["text"], bytes_data=message["bytes"])

    async def disconnect(self, code):
        await self.channel_layer.group_discard(self.room, self.channel_name)


class NoSuchSocket(AsyncWebsocketConsumer):
    """Refuses the handshake: without a last route, ``URLRouter`` raises and the server logs it."""

    async def connect(self):
        await self.close()
