"""The project as it is deployed: a real server, and real workers behind a real channel layer."""

import os
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError

import pytest

ROOT = Path(__file__).parent.parent.parent
BIN = Path(sys.executable).parent
# layer -> entry point and settings
DEPLOYMENTS = {
    "none": ("testproject.wsgi_no_channels", "settings.no_channels"),
    "inmemory": ("testproject.asgi_for_inmemory", "settings.channels_inmemory"),
    "ipc": ("testproject.asgi_for_ipc", "settings.channels_ipc"),
    "redis": ("testproject.asgi", "settings.channels_redis"),
    "redis_pubsub": ("testproject.asgi_for_redis_pubsub", "settings.channels_redis_pubsub"),
}
PATIENCE_S = 30.0


@pytest.fixture
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture
def ipc_directory(tmp_path_factory) -> Path:
    """A runtime directory of the test's own for the inter-process layer."""
    return tmp_path_factory.mktemp("ipc") / "layer"


@pytest.fixture
def environment(request, ipc_directory) -> Callable[[str], dict[str, str]]:
    """Return the environment of a layer's processes; starts Redis only where it is asked for."""

    def for_layer(layer: str) -> dict[str, str]:
        given = {**os.environ, "DJANGO_SECRET_KEY": "not a secret: the tests' own"}
        given["CHANNELS_IPC_DIRECTORY"] = str(ipc_directory)
        given["DJANGO_SETTINGS_MODULE"] = DEPLOYMENTS[layer][1]
        if layer.startswith("redis"):
            given["REDIS_URL"] = request.getfixturevalue("redis_url")
        return given

    return for_layer


@pytest.fixture
def serve(start, free_port, environment) -> Callable[..., str]:
    """Start a server of ``layer``, with ``workers``; return its URL once it answers."""

    def serve_layer(layer: str, server: str = "daphne", workers: int = 0) -> str:
        entry_point, _ = DEPLOYMENTS[layer]
        bind = {
            "gunicorn": ("--bind", f"127.0.0.1:{free_port}", "--log-level", "warning"),
            "daphne": ("--port", str(free_port), "--verbosity", "0"),
            "uvicorn": ("--port", str(free_port), "--log-level", "warning"),
        }[server]
        given = environment(layer)
        options = {"env": given, "cwd": ROOT}
        process = start(str(BIN / server), *bind, f"{entry_point}:application", **options)
        for _ in range(workers):
            start(sys.executable, "manage.py", "runworker", "relay", **options)
        url = f"http://127.0.0.1:{free_port}"
        wait_for(f"{url}/relay/" if workers else f"{url}/healthz", process)
        return url

    return serve_layer


def wait_for(url: str, process) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url):
                return
        except (URLError, ConnectionError) as error:
            if time.monotonic() > end or process.poll() is not None:
                raise TimeoutError(f"{url} did not answer: {error}") from error
        time.sleep(0.05)
