"""The one ASGI application, whatever the channel layer and the server.

``runworker`` finds it through ``ASGI_APPLICATION``; the servers find it through an entry point.
"""

from channels.routing import ChannelNameRouter, ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application
from django.urls import re_path

from testproject.lifespan import lifespan
from testproject.routing import channel_routes, http_routes, websocket_routes

application = ProtocolTypeRouter(
    {
        "http": URLRouter([*http_routes, re_path(r"", get_asgi_application())]),
        "websocket": AllowedHostsOriginValidator(URLRouter(websocket_routes)),
        "channel": ChannelNameRouter(channel_routes),
        "lifespan": lifespan,
    }
)
