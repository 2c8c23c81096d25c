"""The bare ASGI callable: what a request costs before Channels and Django."""

START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/plain"), (b"content-length", b"2")],
}
BODY = {"type": "http.response.body", "body": b"OK"}


async def application(scope, receive, send):
    if scope["type"] != "http":
        raise NotImplementedError(f"this serves http, not {scope['type']}")
    await send(START)
    await send(BODY)
