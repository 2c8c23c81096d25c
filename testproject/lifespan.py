"""The server's start and stop, which a ``ProtocolTypeRouter`` does not handle by itself."""

from typing import Any

from testproject import relay


async def lifespan(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Let go of the channel layer when the server stops."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            relay.close()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
