"""The server's start and stop, which a ``ProtocolTypeRouter`` does not handle by itself."""

from typing import Any


async def lifespan(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Tell the server that the application is ready, and later that it has stopped."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
