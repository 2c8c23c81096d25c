"""Which consumer gets which message; HTTP without a route here goes to Django's views."""

from channels.routing import route

from . import consumers

channel_routing = [
    route("http.request", consumers.http, path=r"^/consumer/$"),
    route("websocket.connect", consumers.connect, path=r"^/ws/echo/$"),
    route("websocket.receive", consumers.echo, path=r"^/ws/echo/$"),
]
