"""Requests over real channel layers to real ``runworker`` processes and back.

The server's end runs here, the worker in a process of its own.
"""

import asyncio
import base64
import json
import os
import signal
import sys

import pytest
from channels.layers import get_channel_layer
from channels.testing import ApplicationCommunicator, HttpCommunicator, WebsocketCommunicator

from testproject import relay
from testproject.application import application

WAIT_S = 20.0
LAYERS = ["ipc", pytest.param("redis", marks=pytest.mark.redis)]
pytestmark = pytest.mark.server


@pytest.fixture(params=LAYERS)
def layer_name(request):
    return request.param


@pytest.fixture
def given(environment, layer_name):
    """The environment of a process behind the layer."""
    return environment(layer_name)


@pytest.fixture
async def layer(given, layer_name, settings, monkeypatch):
    """The layer under test, in this process."""
    for name in ("CHANNELS_IPC_DIRECTORY", "REDIS_URL"):
        monkeypatch.setenv(name, given.get(name, ""))
    config = {
        "ipc": {
            "BACKEND": "channels_ipc.IPCChannelLayer",
            "CONFIG": {"directory": given["CHANNELS_IPC_DIRECTORY"], "capacity": 10},
        },
        "redis": {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            "CONFIG": {
                "hosts": [{"address": given.get("REDIS_URL"), "socket_timeout": None}],
                "capacity": 10,
            },
        },
    }
    settings.CHANNEL_LAYERS = {"default": config[layer_name]}
    settings.RELAY_TIMEOUT_S = WAIT_S
    layer = get_channel_layer()
    await layer.flush()
    yield layer
    relay.close()
    await asyncio.sleep(0)
    await layer.flush()
    if layer_name == "redis":
        await layer.close_pools()
    else:
        await layer.close()


@pytest.fixture
def start_worker(start, given, root):
    def start_one():
        overlay = given["DJANGO_SETTINGS_MODULE"]
        environment = given | {
            "OVERLAY": overlay,
            "DJANGO_SETTINGS_MODULE": "relay_settings",
            "PYTHONPATH": os.pathsep.join([str(root), str(root / "tests" / "testproject")]),
        }
        command = (sys.executable, "manage.py", "runworker", "relay")
        return start(*command, env=environment, cwd=root)

    return start_one


@pytest.fixture
async def worker(layer, start_worker):
    """A worker that has answered."""
    process = start_worker()
    assert (await get("/relay/"))["status"] == 200
    return process


async def get(path, method="GET", body=b"", headers=()):
    headers = [(b"host", b"localhost"), *headers]
    communicator = HttpCommunicator(application, method, path, body=body, headers=headers)
    response = await communicator.get_response(timeout=2 * WAIT_S)
    await communicator.wait()
    response["headers"] = [(name.lower(), value) for name, value in response["headers"]]
    return response


async def test_relay_runs_the_view_in_the_worker(worker):
    response = await get("/relay/")
    headers = dict(response["headers"])
    assert (response["status"], response["body"]) == (200, b"OK")
    assert headers[b"x-worker-pid"] == b"%d" % worker.pid
    assert headers[b"x-server-pid"] == b"%d" % os.getpid()


async def test_relay_carries_the_whole_request(worker):
    body = bytes(range(256)) * 8
    headers = [(b"content-type", b"application/octet-stream"), (b"x-odd", b"caf\xe9; a=1")]
    response = await get("/relay/mirror/a%20b/?x=%C3%A9&x=2", "PUT", body, headers)
    seen = json.loads(response["body"])
    assert response["status"] == 201
    assert (b"x-mirror", b"yes") in response["headers"]
    assert seen["method"] == "PUT"
    assert (seen["path"], seen["path_info"]) == ("/relay/mirror/a b/", "/mirror/a b/")
    assert seen["query"] == "x=%C3%A9&x=2"
    assert seen["headers"]["X-Odd"] == "caf\xe9; a=1"
    assert base64.b64decode(seen["body"]) == body
    assert seen["pid"] == worker.pid


async def test_relay_gives_every_cookie_and_the_redirect_back(worker):
    response = await get("/relay/cookies/")
    assert response["status"] == 302
    assert [name for name, _ in response["headers"]].count(b"set-cookie") == 2


async def test_relay_carries_big_bodies_both_ways(worker):
    million = 1_000_000
    assert (await get("/relay/mirror/big", "POST", b"x" * million))["status"] == 201
    assert (await get(f"/relay/big/?bytes={million}"))["body"] == b"x" * million


async def test_relay_refuses_a_body_beyond_djangos_limit(layer, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000
    assert (await get("/relay/", "POST", b"x" * 1_001))["status"] == 413


async def test_relay_passes_errors_of_the_view_on(worker):
    assert (await get("/relay/broken/"))["status"] == 500
    assert (await get("/relay/no/such/path"))["status"] == 404
    assert (await get("/relay/"))["status"] == 200


async def test_relay_answers_many_at_once_each_with_its_own(worker):
    paths = [f"/relay/mirror/{number}" for number in range(200)]
    responses = await asyncio.gather(*map(get, paths))
    seen = [json.loads(response["body"])["path"] for response in responses]
    assert seen == paths


async def test_relay_without_a_worker_is_504(layer, settings):
    settings.RELAY_TIMEOUT_S = 0.2
    response = await get("/relay/")
    assert response["status"] == 504
    assert b"No worker answered within 0.2 s" in response["body"]


async def test_relay_into_a_full_channel_is_503(layer):
    for _ in range(10):
        await layer.send(relay.CHANNEL, {"type": "relay.requests"})
    response = await get("/relay/")
    assert response["status"] == 503
    assert b"full" in response["body"]


async def test_worker_does_not_run_what_waited_too_long(layer, settings, start_worker):
    settings.RELAY_TIMEOUT_S = 0.1
    assert (await get("/relay/stop/"))["status"] == 504
    relay.close()
    settings.RELAY_TIMEOUT_S = WAIT_S
    process = start_worker()
    assert (await get("/relay/"))["status"] == 200
    assert process.poll() is None


async def test_relay_goes_on_while_a_worker_is_stalled(layer, settings, start_worker, worker):
    worker.send_signal(signal.SIGSTOP)
    other = start_worker()
    settings.RELAY_TIMEOUT_S = 2.0
    relay.close()
    pids = set()
    async with asyncio.timeout(2 * WAIT_S):
        while not pids:
            response = await get("/relay/")
            assert response["status"] in (200, 504)
            pids |= {value for name, value in response["headers"] if name == b"x-worker-pid"}
    assert pids == {b"%d" % other.pid}
    worker.send_signal(signal.SIGCONT)


async def test_relay_with_two_workers_answers_each_request_once(layer, start_worker):
    pids = {b"%d" % start_worker().pid for _ in range(2)}
    seen = set()
    async with asyncio.timeout(2 * WAIT_S):
        while seen != pids:
            responses = await asyncio.gather(*[get("/relay/slow/?seconds=0.01") for _ in range(10)])
            assert {response["body"] for response in responses} == {b"done"}
            seen |= {dict(response["headers"])[b"x-worker-pid"] for response in responses}


async def test_client_that_goes_away_leaves_nothing(worker):
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": "/relay/slow/",
        "query_string": b"seconds=0.2",
        "headers": [(b"host", b"localhost")],
    }
    client = ApplicationCommunicator(application, scope)
    await client.send_input({"type": "http.request", "body": b""})
    for _ in range(20):  # it has nothing to wait for before it waits for the worker
        await asyncio.sleep(0)
    assert relay.counters()["waiting"] == 1
    client.stop(exceptions=False)
    assert (await get("/relay/"))["status"] == 200
    assert relay.counters()["waiting"] == 0


async def test_client_that_goes_away_before_its_body_is_complete_is_not_relayed(layer):
    scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": "/relay/"}
    client = ApplicationCommunicator(application, {**scope, "query_string": b"", "headers": []})
    await client.send_input({"type": "http.request", "body": b"half", "more_body": True})
    await client.send_input({"type": "http.disconnect"})
    await client.wait()
    assert await client.receive_nothing()


ORIGIN = [(b"origin", b"http://localhost"), (b"host", b"localhost")]


async def test_relay_socket_echoes_through_the_worker_in_order(worker):
    socket = WebsocketCommunicator(application, "/ws/relay/", headers=ORIGIN)
    await socket.send_input({"type": "websocket.connect"})
    accepted = await socket.receive_output(timeout=WAIT_S)
    assert (b"X-Worker-Pid", b"%d" % worker.pid) in accepted["headers"]
    assert (b"X-Server-Pid", b"%d" % os.getpid()) in accepted["headers"]
    frames = [{"text": ""}, {"text": "a"}, {"text": "é"}, {"bytes": b""}, {"bytes": b"\x00\xff"}]
    for frame in frames:
        await socket.send_input({"type": "websocket.receive", **frame})
    received = [await socket.receive_output(timeout=WAIT_S) for _ in frames]
    assert received == [{"type": "websocket.send", **frame} for frame in frames]
    await socket.disconnect()


async def test_relay_socket_that_is_asked_names_the_worker_in_a_first_message(worker):
    socket = WebsocketCommunicator(application, "/ws/relay/?pids", headers=ORIGIN)
    await socket.connect(timeout=WAIT_S)
    said = json.loads(await socket.receive_from(timeout=WAIT_S))
    assert said == {"server_pid": os.getpid(), "worker_pid": worker.pid}
    await socket.disconnect()


async def test_relay_socket_without_a_worker_is_refused(layer, settings):
    settings.RELAY_TIMEOUT_S = 0.2
    socket = WebsocketCommunicator(application, "/ws/relay/", headers=ORIGIN)
    assert await socket.connect(timeout=WAIT_S) == (False, 1000)


async def test_relay_socket_whose_worker_dies_is_closed_with_the_reason(worker, settings):
    socket = WebsocketCommunicator(application, "/ws/relay/", headers=ORIGIN)
    await socket.connect(timeout=WAIT_S)
    worker.kill()
    worker.wait()
    relay.close()
    settings.RELAY_TIMEOUT_S = 0.2
    await socket.send_to(text_data="a")
    closed = await socket.receive_output(timeout=WAIT_S)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4013)
    assert "No worker answered" in closed["reason"]
    await socket.disconnect()
