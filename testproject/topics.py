"""Topics: ``/ws/topics/`` and ``/poll/``, delivered through a hub or by plain group_send.

Both deliveries speak the same protocol and put the same bytes on the wire, so one client checks
both, and what differs between them is the delivery. ``settings.DELIVERY`` chooses.
"""

import asyncio
import json
import logging
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from channels.exceptions import ChannelFull
from channels.generic.http import AsyncHttpConsumer
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.conf import settings

from channels_hub.consumers import HubTopicsConsumer, TopicsConsumer
from channels_hub.http import PollConsumer
from channels_hub.hub import GROUP
from channels_hub.outbox import Outbox
from channels_hub.polling import PollSessions
from channels_hub.recall import Recollection
from channels_hub.records import enclose
from testproject.publishing import Feed, FeedError, feed_layer, publish

logger = logging.getLogger("channels_hub")


class GroupTopicsConsumer(TopicsConsumer):
    """Delivers as the Channels tutorial does: a group a topic, a dispatch and a frame a message."""

    async def subscribe(self, topics):
        for topic in topics:
            await self.channel_layer.group_add(GROUP + topic, self.channel_name)

    async def unsubscribe(self, topics):
        for topic in topics:
            await self.channel_layer.group_discard(GROUP + topic, self.channel_name)

    async def hub_record(self, message):
        await self.send(bytes_data=enclose(message["record"]))


class GroupFeed:
    """Feeds each polling client's outbox from a channel of the client's own.

    It stands where a hub would in ``PollSessions``, and has no memory of what was published: a
    client that this process does not know has a gap.
    """

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self._clients: dict[Outbox, tuple[str, asyncio.Task[None]]] = {}

    async def subscribe(self, outbox, topics):
        channel = await self.layer.new_channel()
        task = asyncio.get_running_loop().create_task(self._fill(outbox, channel))
        task.add_done_callback(partial(_ended, outbox))
        self._clients[outbox] = channel, task
        for topic in topics:
            await self.layer.group_add(GROUP + topic, channel)

    async def part(self, outbox, topics):
        channel, task = self._clients.pop(outbox)
        for topic in topics:
            await self.layer.group_discard(GROUP + topic, channel)
        task.cancel()

    async def _fill(self, outbox, channel):
        while True:
            message = await self.layer.receive(channel)
            outbox.pending.append(enclose(message["record"]))
            outbox.settle()

    async def recall(self, topics, positions, since_ns):
        return Recollection()


def _ended(outbox, task):
    # Its client must not take silence for quiet: the next poll starts anew, and names the gap.
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("a polling client's channel failed", exc_info=error)
        outbox.end(f"the channel layer failed: {error}")


_feeds: WeakKeyDictionary[asyncio.AbstractEventLoop, PollSessions] = WeakKeyDictionary()


class GroupPollConsumer(PollConsumer):
    """Long polling on a channel a client."""

    async def sessions(self):
        loop = asyncio.get_running_loop()
        if loop not in _feeds:
            feed = GroupFeed(get_channel_layer())
            _feeds[loop] = PollSessions(feed, feed)
        return _feeds[loop]


SOCKETS = {"hub": HubTopicsConsumer, "group": GroupTopicsConsumer}
POLLS = {"hub": PollConsumer, "group": GroupPollConsumer}


def socket_consumer():
    """Return the consumer of ``/ws/topics/``."""
    return SOCKETS[settings.DELIVERY]


def poll_consumer():
    """Return the consumer of ``/poll/``."""
    return POLLS[settings.DELIVERY]


class PublishConsumer(AsyncHttpConsumer):
    """``POST /publish/``: publishes from inside the server, where no other process could.

    The body is the feed as a JSON object (``testproject.publishing.Feed``), the answer what
    ``manage.py publish`` prints, and it comes when all is published. Only for the in-memory layer,
    one feed at a time: on any other layer the command does it, from a process of its own.
    """

    channel_layer_alias = "none: it does not receive"
    busy = asyncio.Lock()

    async def handle(self, body):
        layer = feed_layer()
        if self.scope["method"] != "POST":
            await self.answer(405, {"error": "POST a feed"}, (b"Allow", b"POST"))
        elif not isinstance(layer, InMemoryChannelLayer):
            reason = "this layer crosses processes: run manage.py publish beside the server"
            await self.answer(409, {"error": reason})
        elif PublishConsumer.busy.locked():
            await self.answer(409, {"error": "a feed is being published: wait for its end"})
        else:
            async with PublishConsumer.busy:
                await self.publish(layer, body)

    async def publish(self, layer, body):
        try:
            feed = Feed(**json.loads(body))
        except (ValueError, TypeError, RecursionError, FeedError) as error:
            await self.answer(400, {"error": f"this is no feed: {error}"})
            return
        try:
            await self.answer(200, await publish(layer, feed, asyncio.Event()))
        except ChannelFull as error:
            await self.answer(503, {"error": f"the layer is full: {error}"})

    async def answer(self, status, content, *headers):
        headers = [(b"Content-Type", b"application/json"), *headers]
        await self.send_response(status, json.dumps(content).encode(), headers=headers)
