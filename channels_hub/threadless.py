"""Consumers that stay in the event loop."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from channels.consumer import AsyncConsumer, get_handler_name
from channels.exceptions import StopConsumer
from channels.layers import get_channel_layer

Message = dict[str, Any]


class Threadless(AsyncConsumer):  # type: ignore[misc]  # Channels publishes no types
    """Handles each message without a trip to a thread before it.

    Channels goes there to close database connections that have become old. A consumer that uses no
    database has none, and one that reaches it through ``database_sync_to_async`` has them closed
    by that. The last of a consumer's bases, so that those before it come to have their say.
    """

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if get_channel_layer(self.channel_layer_alias) is not None:
            await super().__call__(scope, receive, send)
            return
        # Only the client to wait for: Channels would make a task for each of its messages, to wait
        # for several at once.
        self.scope, self.channel_layer, self.base_send = scope, None, send
        with contextlib.suppress(StopConsumer):
            while True:
                await self.dispatch(await receive())
                # A message that has come is received without waiting: everybody else has a turn.
                await asyncio.sleep(0)

    async def dispatch(self, message: Message) -> None:
        handler = getattr(self, get_handler_name(message), None)
        if handler is None:
            raise ValueError(f"no handler for a message of type {message['type']!r}")
        await handler(message)
