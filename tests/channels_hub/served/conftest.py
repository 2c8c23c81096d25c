"""The testproject's topics behind real servers, with publishers in processes of their own."""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.error import URLError

import pytest
from websockets.asyncio.client import connect

ROOT = Path(__file__).parent.parent.parent.parent
BIN = Path(sys.executable).parent
PATIENCE_S = 30.0
ENTRY_POINTS = {
    "ipc": ("testproject.asgi_for_ipc:application", "settings.channels_ipc"),
    "inmemory": ("testproject.asgi_for_inmemory:application", "settings.channels_inmemory"),
}


@pytest.fixture
def environment(tmp_path_factory):
    """Return the environment of a layer's processes; one runtime directory a test."""
    folder = tmp_path_factory.mktemp("ipc") / "layer"

    def environment(layer="ipc", delivery="hub"):
        return os.environ | {
            "DJANGO_SECRET_KEY": "not a secret: the tests' own",
            "CHANNELS_IPC_DIRECTORY": str(folder),
            "DJANGO_SETTINGS_MODULE": ENTRY_POINTS[layer][1],
            "TESTPROJECT_DELIVERY": delivery,
        }

    return environment


@pytest.fixture
def serve(start, environment):
    """Start a server; return its authority (host:port) once it answers."""

    def serve(server="uvicorn", layer="ipc", delivery="hub"):
        port = free_port()
        options = {
            "uvicorn": ("--port", str(port), "--log-level", "warning", "--ws", "websockets-sansio"),
            "daphne": ("--port", str(port), "--verbosity", "0"),
        }[server]
        process = start(
            str(BIN / server),
            *options,
            ENTRY_POINTS[layer][0],
            env=environment(layer, delivery),
            cwd=ROOT,
        )
        wait_for(f"http://127.0.0.1:{port}/healthz", process)
        return f"127.0.0.1:{port}"

    return serve


def free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def wait_for(url, process):
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url):
                return
        except (URLError, ConnectionError) as error:
            if time.monotonic() > end or process.poll() is not None:
                raise TimeoutError(f"{url} did not answer: {error}") from error
        time.sleep(0.05)


@pytest.fixture
def publish(start, environment):
    """Start ``manage.py publish``; its ``statistics()`` waits for the end and returns them."""

    def publish(layer="ipc", delivery="hub", **options):
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        process = start(
            sys.executable,
            "manage.py",
            "publish",
            *flags,
            env=environment(layer, delivery),
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        processes.append(process)
        return Publishing(process)

    processes = []
    yield publish
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


class Publishing:
    def __init__(self, process):
        self.process = process

    async def statistics(self):
        out, _ = await asyncio.to_thread(self.process.communicate, timeout=PATIENCE_S)
        assert self.process.returncode == 0
        return json.loads(out)


@pytest.fixture
def topics_socket():
    """Return a context manager: a socket at ``/ws/topics/`` of a server."""

    def open_socket(authority, **options):
        return connect(
            f"ws://{authority}/ws/topics/",
            origin=f"http://{authority}",
            max_size=None,
            compression=None,
            **options,
        )

    return open_socket
