"""The overlays differ in the channel layer and in nothing else."""

import os
import subprocess
import sys
from importlib import import_module
from runpy import run_path
from typing import Any

import pytest

OVERLAYS = {
    "no_channels": None,
    "channels_inmemory": "channels.layers.InMemoryChannelLayer",
    "channels_ipc": "channels_ipc.IPCChannelLayer",
    "channels_redis": "channels_redis.core.RedisChannelLayer",
    "channels_redis_pubsub": "channels_redis.pubsub.RedisPubSubChannelLayer",
}
REDIS_URL = "redis://redis.invalid:1234/0"


@pytest.fixture(autouse=True)
def _redis_named(monkeypatch):
    monkeypatch.setenv("REDIS_URL", REDIS_URL)


def values(overlay: str) -> dict[str, Any]:
    module = import_module(f"settings.{overlay}")
    return {name: getattr(module, name) for name in dir(module) if name.isupper()}


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "manage.py", *arguments]
    given = {**os.environ, "DJANGO_SETTINGS_MODULE": "", **environment}
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_overlay_differs_from_base_in_the_layer_only(overlay):
    base, given = values("base"), values(overlay)
    layers = given.pop("CHANNEL_LAYERS", None)
    if layers:
        assert layers["hub"]["BACKEND"] == layers["default"]["BACKEND"]
    given.pop("REDIS_HOSTS", None)
    assert given == base
    assert (layers and layers["default"]["BACKEND"]) == OVERLAYS[overlay]


def test_overlays_for_redis_use_the_given_redis_with_the_same_connection():
    core, pubsub = values("channels_redis"), values("channels_redis_pubsub")
    config = core["CHANNEL_LAYERS"]["default"]["CONFIG"]
    # Without the None redis-py gives up on a channel that stays quiet, and without the number on
    # the 101st consumer at once.
    host = {"address": REDIS_URL, "socket_timeout": None, "max_connections": 10_000}
    hosts = {"hosts": [host]}
    assert pubsub["CHANNEL_LAYERS"]["default"]["CONFIG"] == hosts
    assert config == hosts


@pytest.mark.parametrize("overlay", ["channels_inmemory", "channels_ipc", "channels_redis"])
def test_overlay_gives_a_hub_room_for_a_whole_process(overlay):
    probe = (
        "from channels.layers import get_channel_layer as get; "
        "print(get('hub').get_capacity('specific.a!b'), get().get_capacity('specific.a!b'))"
    )
    module = f"settings.{overlay}"
    done = manage("shell", "--no-imports", "-c", probe, DJANGO_SETTINGS_MODULE=module)
    assert done.stdout == "8192 100\n", done.stderr


@pytest.mark.parametrize("name", ["", "Hub", "both"])
def test_delivery_unknown_refuses(name):
    done = manage("check", TESTPROJECT_DELIVERY=name)
    assert done.returncode != 0
    assert f"TESTPROJECT_DELIVERY={name!r} is not one of hub, group" in done.stderr


@pytest.mark.parametrize("overlay", ["channels_redis", "channels_redis_pubsub"])
def test_overlay_for_redis_without_an_address_refuses(overlay):
    done = manage("check", DJANGO_SETTINGS_MODULE=f"settings.{overlay}", REDIS_URL="")
    assert done.returncode != 0
    assert "REDIS_URL is not set: give it, such as" in done.stderr


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_deployment_check_finds_nothing(overlay):
    module = f"settings.{overlay}"
    done = manage("check", "--deploy", "--fail-level", "INFO", DJANGO_SETTINGS_MODULE=module)
    assert done.returncode == 0, done.stderr


def test_middleware_none_is_empty():
    probe = "from django.conf import settings; print(settings.MIDDLEWARE)"
    done = manage("shell", "--no-imports", "-c", probe, TESTPROJECT_MIDDLEWARE="none")
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", ["", "Stock", "all"])
def test_middleware_unknown_refuses(name):
    done = manage("check", TESTPROJECT_MIDDLEWARE=name)
    assert done.returncode != 0
    assert f"TESTPROJECT_MIDDLEWARE={name!r} is not one of stock, none" in done.stderr


@pytest.mark.parametrize("name", ["", "Django", "two_hop"])
def test_handler_unknown_refuses(name):
    done = manage("check", TESTPROJECT_HANDLER=name)
    assert done.returncode != 0
    assert f"TESTPROJECT_HANDLER={name!r} is not one of django, one_hop" in done.stderr


@pytest.mark.parametrize(
    ("name", "handler", "loaded"),
    [("django", "ASGIHandler", False), ("one_hop", "OneHopHandler", True)],
)
def test_handler_is_the_one_asked_for_and_loads_no_other(name, handler, loaded):
    probe = (
        "import sys; from testproject.application import application;"
        "routes = application.application_mapping['http'].routes;"
        "print(type(routes[-1].callback).__name__, 'testproject.one_hop' in sys.modules)"
    )
    done = manage("shell", "--no-imports", "-c", probe, TESTPROJECT_HANDLER=name)
    assert done.stdout == f"{handler} {loaded}\n", done.stderr


def test_middleware_stock_is_what_startproject_writes(tmp_path):
    manage("startproject", "fresh", str(tmp_path))
    written = run_path(str(tmp_path / "fresh" / "settings.py"))
    assert written["MIDDLEWARE"] == values("base")["MIDDLEWARE_SETS"]["stock"]


def test_manage_without_settings_module_has_no_channels():
    probe = "from django.conf import settings; print(settings.SETTINGS_MODULE)"
    environment = {
        key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"
    }
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", probe]
    printed = subprocess.check_output(command, env=environment, text=True)
    assert printed == "settings.no_channels\n"
