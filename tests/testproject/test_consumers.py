"""The consumers in this process, over the in-memory layer."""

import asyncio
import json
import os

import pytest
from channels.testing import ApplicationCommunicator, HttpCommunicator, WebsocketCommunicator

from testproject.application import application

ORIGIN = [(b"origin", b"http://localhost"), (b"host", b"localhost")]
FRAMES = [{"text": "é"}, {"text": ""}, {"bytes": b"\x00\xff"}, {"bytes": b""}]


def connect(path, headers=ORIGIN):
    return WebsocketCommunicator(application, path, headers=headers)


@pytest.fixture
async def echo():
    socket = connect("/ws/echo/")
    await socket.send_input({"type": "websocket.connect"})
    accepted = await socket.receive_output()
    assert (b"X-Server-Pid", b"%d" % os.getpid()) in accepted["headers"]
    yield socket
    await socket.disconnect()


@pytest.mark.parametrize("frame", FRAMES, ids=str)
async def test_echo_gives_the_frame_back(echo, frame):
    await echo.send_input({"type": "websocket.receive", **frame})
    assert await echo.receive_output() == {"type": "websocket.send", **frame}


async def test_echo_that_is_asked_says_who_serves_in_a_first_message():
    socket = connect("/ws/echo/?pids")
    await socket.connect()
    assert json.loads(await socket.receive_from()) == {"server_pid": os.getpid()}
    await socket.disconnect()


async def test_room_gives_everybody_in_it_every_message():
    here = [connect("/ws/room/one/") for _ in range(3)]
    elsewhere = connect("/ws/room/two/")
    for socket in (*here, elsewhere):
        assert (await socket.connect())[0]
    await here[0].send_to(text_data="hello")
    await here[1].send_to(bytes_data=b"\xff")
    for socket in here:
        assert [await socket.receive_from(), await socket.receive_from()] == ["hello", b"\xff"]
    assert await elsewhere.receive_nothing()
    for socket in (*here, elsewhere):
        await socket.disconnect()


async def test_room_forgets_who_has_left():
    left, stays = connect("/ws/room/one/"), connect("/ws/room/one/")
    for socket in (left, stays):
        await socket.connect()
    await left.disconnect()
    await stays.send_to(text_data="alone")
    assert await stays.receive_from() == "alone"
    await stays.disconnect()


@pytest.mark.parametrize("path", ["/ws/nowhere/", "/ws/room/", "/ws/room/a b/", "/ws/room/é/", "/"])
async def test_socket_on_an_unknown_path_is_refused(path):
    assert await connect(path).connect() == (False, 1000)


async def test_socket_on_an_unknown_path_says_why_where_the_server_can():
    socket = connect("/ws/nowhere/")
    socket.scope["extensions"] = {"websocket.http.response": {}}
    await socket.send_input({"type": "websocket.connect"})
    assert (await socket.receive_output())["status"] == 404
    assert b"no WebSocket here" in (await socket.receive_output())["body"]
    await socket.send_input({"type": "websocket.disconnect", "code": 1006})
    await socket.wait()


@pytest.mark.parametrize("path", ["/ws/echo/", "/ws/relay/", "/ws/room/one/"])
@pytest.mark.parametrize(
    "origin", [[], [(b"origin", b"http://evil.example")]], ids=["none", "evil"]
)
async def test_socket_from_another_origin_is_refused(path, origin):
    assert not (await connect(path, headers=origin).connect())[0]


async def test_relay_socket_over_a_layer_within_one_process_is_refused():
    assert await connect("/ws/relay/").connect() == (False, 1000)


async def http(method, path, body=b""):
    headers = [(b"host", b"localhost")]
    communicator = HttpCommunicator(application, method, path, body, headers)
    response = await communicator.get_response()
    await communicator.wait()
    return response


async def test_consumer_answers_as_the_view_does():
    view, consumer = [await http("GET", path) for path in ("/", "/consumer/")]
    assert (consumer["status"], consumer["body"]) == (view["status"], view["body"]) == (200, b"OK")
    assert {(name.lower(), value) for name, value in consumer["headers"]} <= {
        (name.lower(), value) for name, value in view["headers"]
    }


async def test_consumer_with_an_unsafe_method_is_refused():
    response = await http("POST", "/consumer/", b"x")
    assert (response["status"], response["headers"]) == (405, [(b"Allow", b"GET, HEAD")])


async def test_relay_over_a_layer_within_one_process_is_503():
    response = await http("GET", "/relay/")
    assert response["status"] == 503
    assert b"does not reach other processes" in response["body"]


async def test_lifespan_is_answered_to_the_end():
    server = ApplicationCommunicator(application, {"type": "lifespan"})
    for event in ("startup", "shutdown"):
        await server.send_input({"type": f"lifespan.{event}"})
        assert await server.receive_output() == {"type": f"lifespan.{event}.complete"}
    async with asyncio.timeout(5):
        await server.wait()


async def test_worker_of_an_unknown_channel_is_refused():
    worker = ApplicationCommunicator(application, {"type": "channel", "channel": "nobody"})
    with pytest.raises(ValueError, match="nobody"):
        await worker.wait()
