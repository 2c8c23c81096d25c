"""The bare ASGI callable: what a request costs before Channels and Django."""

START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/plain"), (b"content-length", b"2")],
}
BODY = {"type": "http.response.body", "body": b"OK"}


async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
    elif scope["type"] == "http":
        await send(START)
        await send(BODY)
    else:
        raise NotImplementedError(f"this serves http, not {scope['type']}")


async def lifespan(receive, send):
    """Agree to the server's start and stop."""
    while True:
        event = (await receive())["type"]
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return
