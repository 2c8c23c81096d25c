"""Consumers that stay in the event loop."""

from typing import Any

from channels.consumer import AsyncConsumer, get_handler_name


class Threadless(AsyncConsumer):  # type: ignore[misc]  # Channels publishes no types
    """Handles each message without a trip to a thread before it.

    Channels goes there to close database connections that have become old. A consumer that uses no
    database has none, and one that reaches it through ``database_sync_to_async`` has them closed
    by that.
    """

    async def dispatch(self, message: dict[str, Any]) -> None:
        handler = getattr(self, get_handler_name(message), None)
        if handler is None:
            raise ValueError(f"no handler for a message of type {message['type']!r}")
        await handler(message)
