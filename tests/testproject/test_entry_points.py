"""An entry point runs its own settings, or does not start."""

import os
import subprocess
import sys

import pytest

ENTRY_POINTS = {
    "wsgi_no_channels": ("settings.no_channels", "None"),
    "asgi": ("settings.channels_redis", "channels_redis.core.RedisChannelLayer"),
    "asgi_for_ipc": ("settings.channels_ipc", "channels_ipc.IPCChannelLayer"),
    "asgi_for_inmemory": (
        "settings.channels_inmemory",
        "channels.layers.InMemoryChannelLayer",
    ),
    "asgi_for_redis_pubsub": (
        "settings.channels_redis_pubsub",
        "channels_redis.pubsub.RedisPubSubChannelLayer",
    ),
}
PROBE = """
from testproject import {entry_point}
from django.conf import settings
layers = getattr(settings, "CHANNEL_LAYERS", None)
print(settings.SETTINGS_MODULE, layers and layers["default"]["BACKEND"])
"""


def imported(entry_point: str, settings_module: str | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "REDIS_URL": "redis://redis.invalid:1"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    if settings_module is not None:
        environment["DJANGO_SETTINGS_MODULE"] = settings_module
    command = [sys.executable, "-c", PROBE.format(entry_point=entry_point)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("given", ["unset", "empty", "its own"])
def test_entry_point_runs_its_own_settings(entry_point, given):
    module, backend = ENTRY_POINTS[entry_point]
    done = imported(entry_point, {"unset": None, "empty": "", "its own": module}[given])
    assert done.stdout == f"{module} {backend}\n", done.stderr


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_entry_point_under_other_settings_refuses(entry_point):
    module, _ = ENTRY_POINTS[entry_point]
    others = {other for other, _ in ENTRY_POINTS.values()} - {module}
    for other in sorted(others):
        done = imported(entry_point, other)
        assert done.returncode != 0
        assert f"runs {module}, but DJANGO_SETTINGS_MODULE is {other}" in done.stderr
