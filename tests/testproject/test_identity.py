"""Who serves, found out from the process."""

import os

import pytest
from django.test import AsyncClient

from testproject.identity import layer_name, middleware_set, running_server


@pytest.mark.parametrize(
    ("modules", "server"),
    [
        ({"gunicorn.arbiter"}, "gunicorn"),
        ({"uvicorn.main"}, "uvicorn"),
        ({"daphne.cli"}, "daphne"),
        ({"granian.server"}, "granian"),
        ({"daphne.testing", "daphne.server"}, None),
        (set(), None),
    ],
)
def test_server_is_the_one_whose_command_runs(modules, server):
    assert running_server(modules) == server


def test_server_under_another_is_neither():
    assert running_server({"gunicorn.arbiter", "uvicorn.main"}) == "gunicorn+uvicorn"


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        (None, "none"),
        ("channels.layers.InMemoryChannelLayer", "inmemory"),
        ("channels_ipc.layer.IPCChannelLayer", "ipc"),
        ("channels_redis.core.RedisChannelLayer", "redis"),
        ("channels_redis.pubsub.RedisPubSubChannelLayer", "redis_pubsub"),
        ("somebody.elses.Layer", None),
    ],
)
def test_layer_is_named_by_its_class(backend, name):
    assert layer_name(backend) == name


def test_middleware_that_is_no_named_set_has_no_name(settings):
    assert middleware_set([]) == "none"
    assert middleware_set(settings.MIDDLEWARE_SETS["stock"]) == "stock"
    assert middleware_set(["django.middleware.gzip.GZipMiddleware"]) is None


def test_healthz_over_wsgi(client):
    answer = client.get("/healthz").json()
    assert answer["interface"] == "wsgi"
    assert answer["pid"] == os.getpid()
    assert answer["layer"] == "inmemory"
    assert answer["settings"] == "settings.channels_inmemory"
    assert answer["middleware"] == "stock"
    assert {"python", "django", "channels"} <= answer["versions"].keys()


async def test_healthz_over_asgi():
    answer = (await AsyncClient().get("/healthz")).json()
    assert answer["interface"] == "asgi"
