"""The one ASGI application, whatever the channel layer and the server.

``runworker`` finds it through ``ASGI_APPLICATION``; the servers find it through an entry point.
"""

from collections.abc import Callable
from typing import Any

from channels.routing import ChannelNameRouter, ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import re_path

from testproject.lifespan import lifespan
from testproject.routing import channel_routes, http_routes, websocket_routes


def django_application() -> Callable[..., Any]:
    """Return Django, entered as ``settings.HANDLER`` says."""
    if settings.HANDLER == "one_hop":
        # Here, because its being loaded is how a process tells which one it runs.
        from testproject.one_hop import OneHopHandler

        return OneHopHandler()
    return get_asgi_application()


application = ProtocolTypeRouter(
    {
        "http": URLRouter([*http_routes, re_path(r"", django_application())]),
        "websocket": AllowedHostsOriginValidator(URLRouter(websocket_routes)),
        "channel": ChannelNameRouter(channel_routes),
        "lifespan": lifespan,
    }
)
