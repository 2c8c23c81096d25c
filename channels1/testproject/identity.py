"""Who answered: the same keys as today's ``/healthz``, so that one check serves both stacks."""

import os
import platform

import django
import pkg_resources
from django.conf import settings

LAYERS = {"asgi_redis": "redis", "asgi_ipc": "ipc", "testproject": "ipc"}  # ours is asgi_ipc mended
DISTRIBUTIONS = ("channels", "daphne", "gunicorn", "asgiref", "asgi_redis", "asgi_ipc", "twisted")


def identity(request):
    server, server_version, interface = _server(request)
    layer = _layer()
    backend = _path(type(layer)) if layer else None
    return {
        "stack": "channels017" if _version("channels").startswith("0.17") else "channels1",
        "server": server,
        "server_version": server_version,
        "interface": interface,
        "layer": LAYERS[backend.split(".")[0]] if backend else "none",
        "layer_backend": backend,
        "mended": getattr(layer, "mended", []),
        "middleware": "stock" if settings.MIDDLEWARE else "none",
        "settings": settings.SETTINGS_MODULE,
        "pid": os.getpid(),
        "versions": _versions(),
    }


def _server(request):
    """Return (name, version, interface) of the server that ``request`` came through.

    WSGI requests carry it. A request over a channel layer says nothing, but only one server ever
    spoke that protocol.
    """
    software = request.META.get("SERVER_SOFTWARE")
    if software:
        name, _, version = software.partition("/")
        return name, version, "wsgi"
    return "daphne", _version("daphne"), "asgi"


def _layer():
    if "channels" not in settings.INSTALLED_APPS:
        return None
    from channels.asgi import channel_layers

    return channel_layers["default"].channel_layer


def _path(kind):
    return f"{kind.__module__}.{kind.__name__}"


def _version(distribution):
    return pkg_resources.get_distribution(distribution).version


def _versions():
    versions = {name: _version(name) for name in DISTRIBUTIONS}
    return dict(versions, python=platform.python_version(), django=django.get_version())
