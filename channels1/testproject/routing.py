"""HTTP needs no route here: in Channels 1 every request goes to Django's views by default."""

from channels.routing import route

from . import consumers

channel_routing = [
    route("websocket.connect", consumers.connect, path=r"^/ws/echo/$"),
    route("websocket.receive", consumers.echo, path=r"^/ws/echo/$"),
]
