"""Who serves: found out from the running process, never from what it was told to be.

A benchmark that trusts its own configuration measures the wrong thing sooner or later.
"""

import hashlib
import os
import socket
import sys
from collections.abc import Container
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest

# server -> the module that only its own command imports. An application may import a server's
# package (Channels' test case imports Daphne's), but not the part that runs it.
ENTRY_MODULES = {
    "gunicorn": "gunicorn.arbiter",
    "uvicorn": "uvicorn.main",
    "daphne": "daphne.cli",
    "granian": "granian.server",
}
# The start of a layer class's dotted path -> the layer's name.
LAYERS = {
    "channels.layers.InMemoryChannelLayer": "inmemory",
    "channels_ipc.": "ipc",
    "channels_redis.core.": "redis",
    "channels_redis.pubsub.": "redis_pubsub",
}
PACKAGES = ("django", "channels", "channels_redis", "redis", "asgiref")


def identity(request: HttpRequest) -> dict[str, Any]:
    """Return who answers ``request``; what could not be found out is ``None``."""
    interface = "asgi" if isinstance(request, ASGIRequest) else "wsgi"
    server = running_server(sys.modules)
    backend = dotted_path(get_channel_layer())
    return {
        "server": "gunicorn_asgi" if (server, interface) == ("gunicorn", "asgi") else server,
        "server_version": installed_version(server) if server else None,
        "interface": interface,
        "layer": layer_name(backend),
        "layer_backend": backend,
        "middleware": middleware_set(settings.MIDDLEWARE),
        "handler": "one_hop" if "testproject.one_hop" in sys.modules else "django",
        "delivery": settings.DELIVERY,
        "settings": settings.SETTINGS_MODULE,
        "pid": os.getpid(),
        "host": host(),
        "versions": versions(),
    }


def client(request: HttpRequest) -> dict[str, str | None]:
    """Return who asks, as this application sees it: to find out whether a client can lie.

    gunicorn's WSGI workers leave the address at the proxy's; there ``forwarded_for`` has it.
    """
    return {
        "address": request.META.get("REMOTE_ADDR"),
        "scheme": request.scheme,
        "forwarded_for": request.headers.get("X-Forwarded-For"),
    }


def host() -> str:
    """Return a name for this machine or container, whose pids begin at 1.

    Made from its real name, and tells nothing about it: results are published.
    """
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]


def running_server(modules: Container[str]) -> str | None:
    """Return the server whose entry module is among ``modules``.

    Where two are (one server's worker under another), both, joined by ``+``: that is neither.
    """
    return "+".join(name for name, module in ENTRY_MODULES.items() if module in modules) or None


def dotted_path(layer: object | None) -> str | None:
    """Return the path of the layer's class, as ``CHANNEL_LAYERS`` would name it."""
    return f"{type(layer).__module__}.{type(layer).__qualname__}" if layer else None


def layer_name(backend: str | None) -> str | None:
    """Return what this project calls the layer; ``none`` without one, ``None`` if unknown."""
    if backend is None:
        return "none"
    return next((name for start, name in LAYERS.items() if backend.startswith(start)), None)


def middleware_set(middleware: list[str]) -> str | None:
    """Return the name of the set that ``middleware`` is; ``None`` if it is no named one."""
    sets = settings.MIDDLEWARE_SETS.items()
    return next((name for name, members in sets if members == middleware), None)


def versions() -> dict[str, str | None]:
    """Return the version of everything that could explain a difference between two runs."""
    return {"python": python_version()} | {name: installed_version(name) for name in PACKAGES}


def installed_version(package: str) -> str | None:
    """Return the version of ``package``; ``None`` where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
