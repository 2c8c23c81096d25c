import asyncio
import json

import pytest
from channels.exceptions import StopConsumer
from channels.testing import ApplicationCommunicator, HttpCommunicator, WebsocketCommunicator

from channels_hub import CLOSE, Hub
from channels_hub.consumers import HubTopicsConsumer, RequestError, parse, parse_topics
from channels_hub.http import PollConsumer
from channels_hub.publisher import Publisher
from channels_hub.records import decode
from channels_hub.threadless import Threadless


@pytest.fixture
async def hub():
    hub = await Hub.current()
    yield hub
    if not hub.closed:
        await hub.close()


@pytest.fixture
def publisher(hub):
    return Publisher(hub.layer, window=0)


@pytest.fixture
async def connect(hub):
    """Return a function that opens a socket; all are closed at the end."""
    sockets = []

    async def connect(consumer=HubTopicsConsumer):
        socket = WebsocketCommunicator(consumer.as_asgi(), "/ws/topics/")
        assert (await socket.connect())[0]
        sockets.append(socket)
        return socket

    yield connect
    for socket in sockets:
        await socket.disconnect()


async def ask(socket, **request):
    await socket.send_json_to(request)
    return await socket.receive_json_from()


async def receive(socket, records):
    got = []
    while len(got) < records:
        got += decode(await socket.receive_from())
    return got


async def test_subscription_is_acknowledged_and_then_live(connect, publisher):
    socket = await connect()
    assert await ask(socket, subscribe=["a", "b", "a"], id=5) == {"subscribed": 2, "id": 5}
    for topic in "abc":
        await publisher.publish(topic, topic.encode())
    assert [record.body for record in await receive(socket, 2)] == [b"a", b"b"]


async def test_socket_and_poll_never_wait_for_a_thread(connect, publisher, monkeypatch):
    async def refuse(*_):
        raise AssertionError("a trip to a thread")

    monkeypatch.setattr("channels.consumer.aclose_old_connections", refuse)
    socket = await connect()
    await ask(socket, subscribe=["a"])
    await publisher.publish("a", b"x")
    await receive(socket, 1)
    poll = HttpCommunicator(PollConsumer.as_asgi(), "GET", "/poll/?topic=a")
    assert (await poll.get_response())["status"] == 200


async def test_socket_and_poll_make_no_task_for_each_of_the_client_s_messages(
    connect, publisher, monkeypatch
):
    def refuse(*_):
        raise AssertionError("several places to wait for")

    monkeypatch.setattr("channels.consumer.await_many_dispatch", refuse)
    socket = await connect()
    await ask(socket, subscribe=["a"])
    assert await ask(socket, unsubscribe=["a"]) == {"unsubscribed": 1}
    poll = HttpCommunicator(PollConsumer.as_asgi(), "GET", "/poll/?topic=a&timeout=0")
    assert (await poll.get_response())["status"] == 200


async def test_threadless_consumer_with_a_layer_hears_both_client_and_layer():
    class Both(Threadless):
        async def websocket_receive(self, message):
            await self.channel_layer.send(
                self.channel_name, {"type": "said", "text": message["text"]}
            )

        async def said(self, message):
            await self.send(message)
            raise StopConsumer

    socket = ApplicationCommunicator(Both.as_asgi(), {"type": "websocket"})
    await socket.send_input({"type": "websocket.receive", "text": "hello"})
    assert await socket.receive_output() == {"type": "said", "text": "hello"}
    await socket.wait()


async def test_client_that_sends_without_end_leaves_everybody_else_a_turn(turns):
    class Counting(Threadless):
        channel_layer_alias = "none"
        received = 0

        async def websocket_receive(self, _):
            self.received += 1
            if self.received == 100:
                raise StopConsumer

    async def at_once():
        return {"type": "websocket.receive"}

    async with turns() as had:
        await Counting()({"type": "websocket"}, at_once, None)
    assert len(had) > 90


async def test_message_that_a_consumer_has_no_handler_for_is_named():
    with pytest.raises(ValueError, match=r"no handler for a message of type 'no\.such'"):
        await Threadless().dispatch({"type": "no.such"})


async def test_topic_unsubscribed_comes_no_more(connect, publisher):
    socket = await connect()
    await ask(socket, subscribe=["a", "b"])
    assert await ask(socket, unsubscribe=["a", "never"]) == {"unsubscribed": 1}
    await publisher.publish("a", b"")
    await publisher.publish("b", b"")
    assert [record.topic for record in await receive(socket, 1)] == ["b"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (" ", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"subscribe": [' + "[" * 900 + "]" * 900 + "]}", "a list is not a topic"),
        ('{"received": ' + "[" * 900 + "]" * 900 + "}", "no count"),
        ("[]", "a JSON object"),
        ('{"subscribe": [], "id": []}', "an id is"),
        (json.dumps({"subscribe": [], "id": "x" * 101}), "an id is"),
        ("{}", "holds one of"),
        ('{"subscribe": [], "received": 1}', "holds one of"),
        ('{"subscribe": "a"}', "a list of names"),
        ('{"subscribe": ["a b"]}', "is not a topic"),
        ('{"subscribe": [null]}', "is not a topic"),
        ('{"received": 1}', "no count"),
        ('{"received": -1}', "no count"),
        ('{"received": "x"}', "no count"),
        (json.dumps({"subscribe": [str(n) for n in range(100_001)]}), "100001 topics are more"),
    ],
)
async def test_request_that_makes_no_sense_leaves_the_socket_usable(
    connect, publisher, text, complaint
):
    socket = await connect()
    await socket.send_to(text_data=text)
    assert complaint in (await socket.receive_json_from())["error"]
    assert await ask(socket, subscribe=["a"]) == {"subscribed": 1}
    await publisher.publish("a", b"")
    assert len(await receive(socket, 1)) == 1


async def test_request_with_an_unknown_topic_among_good_ones_changes_nothing(connect, hub):
    socket = await connect()
    assert "error" in await ask(socket, subscribe=["good", "not good"])
    assert "topic.good" not in hub.layer.groups


async def test_request_in_binary_is_refused(connect):
    socket = await connect()
    await socket.send_to(bytes_data=b"{}")
    assert "text" in (await socket.receive_json_from())["error"]


def test_request_longer_than_allowed_is_not_even_parsed():
    with pytest.raises(RequestError, match="characters are more than"):
        parse("[" * (4 * 1024 * 1024 + 1))


def test_topics_of_a_million_are_refused_by_their_number():
    with pytest.raises(RequestError, match="1000000 topics"):
        parse_topics(["a"] * 1_000_000)


class SmallWindow(HubTopicsConsumer):
    WINDOW_BYTES = 100
    OUTBOX_LIMIT = 5


async def test_client_that_says_nothing_of_what_it_received_gets_no_more_than_a_window(
    connect, hub, publisher
):
    silent, other = await connect(SmallWindow), await connect()
    for socket in (silent, other):
        await ask(socket, subscribe=["a"])
    for _ in range(100):
        await publisher.publish("a", b"x" * 200)
        await asyncio.sleep(0)
    assert len(await receive(other, 100)) == 100
    frame = await silent.receive_from()
    assert await silent.receive_nothing()
    await silent.send_json_to({"received": len(frame)})
    rest = decode(await silent.receive_from())
    assert rest[-1].sequence == 100
    assert len(rest) <= 5
    assert hub.dropped == 100 - len(rest) - len(decode(frame))


class ClosesSlowClients(SmallWindow):
    POLICY = CLOSE


async def test_client_that_falls_behind_is_closed_where_that_is_the_policy(connect, publisher):
    socket = await connect(ClosesSlowClients)
    await ask(socket, subscribe=["a"])
    for _ in range(100):
        await publisher.publish("a", b"x" * 200)
    frame = await socket.receive_from()
    await socket.send_json_to({"received": len(frame)})
    assert await socket.receive_output() == {"type": "websocket.close", "code": 4013}


async def fill_window(socket, publisher):
    """Have a socket sent as much as it may be without a word of its own."""
    await ask(socket, subscribe=["a"])
    await publisher.publish("a", b"x" * 200)
    assert len(await socket.receive_from()) > SmallWindow.WINDOW_BYTES


async def test_client_that_falls_behind_is_closed_without_having_said_a_word(connect, publisher):
    socket = await connect(ClosesSlowClients)
    await fill_window(socket, publisher)
    for _ in range(100):
        await publisher.publish("a", b"x" * 200)
    assert await socket.receive_output() == {"type": "websocket.close", "code": 4013}


async def test_client_that_says_nothing_is_told_when_the_hub_stops(connect, hub, publisher):
    socket = await connect(SmallWindow)
    await fill_window(socket, publisher)
    await hub.close()
    assert await socket.receive_output() == {"type": "websocket.close", "code": 4011}


async def test_client_that_subscribes_to_a_hub_that_has_stopped_is_told(connect, hub):
    socket = await connect()
    await hub.close()
    await socket.send_json_to({"subscribe": ["a"]})
    told = [await socket.receive_output() for _ in range(2)]
    assert {"type": "websocket.close", "code": 4011} in told


async def test_client_that_sends_nothing_but_nonsense_is_closed(connect, publisher):
    socket = await connect()
    await ask(socket, subscribe=["a"])
    for text in ["{"] * 99 + ['{"received": 0}'] + ["{"] * 110:
        await socket.send_to(text_data=text)
    for _ in range(2 * 99):
        assert "error" in await socket.receive_json_from()
    assert await socket.receive_output() == {"type": "websocket.close", "code": 4008}
    await publisher.publish("a", b"too late")
    assert await socket.receive_nothing()


class LosesItsClient(HubTopicsConsumer):
    async def send(self, text_data=None, bytes_data=None, close=False):
        if bytes_data:
            raise ConnectionResetError("the client has gone")
        await super().send(text_data, bytes_data, close)


async def test_client_that_goes_while_it_is_sent_something_leaves_nothing_behind(hub, publisher):
    socket = WebsocketCommunicator(LosesItsClient.as_asgi(), "/ws/topics/")
    await socket.connect()
    await ask(socket, subscribe=["a"])
    await publisher.publish("a", b"")
    assert await socket.receive_nothing()
    await socket.disconnect()
    assert not hub.layer.groups.get("topic.a")
    assert hub._clients == {}


async def test_client_that_goes_before_its_answer_leaves_nothing_behind(hub, monkeypatch):
    """The server raises in send(), and Channels never comes to disconnect()."""

    async def refuse(self, answer, request):
        raise ConnectionResetError("the client has gone")

    monkeypatch.setattr(HubTopicsConsumer, "reply", refuse)
    socket = WebsocketCommunicator(HubTopicsConsumer.as_asgi(), "/ws/topics/")
    await socket.connect()
    await socket.send_json_to({"subscribe": ["a"]})
    with pytest.raises(ConnectionResetError):
        await socket.wait()
    assert hub._clients == {}
    assert not hub.layer.groups.get("topic.a")


@pytest.mark.parametrize(
    ("call", "request_"),
    [("group_add", {"subscribe": ["new"]}), ("group_discard", {"unsubscribe": ["old"]})],
)
async def test_client_whose_topics_cannot_be_changed_is_closed(
    hub, monkeypatch, caplog, call, request_
):
    socket = WebsocketCommunicator(HubTopicsConsumer.as_asgi(), "/ws/topics/")
    await socket.connect()
    await ask(socket, subscribe=["old"])

    async def refuse(group, channel):
        raise ConnectionError("the server went away")

    monkeypatch.setattr(hub.layer, call, refuse)
    await socket.send_json_to(request_)
    assert await socket.receive_output() == {"type": "websocket.close", "code": 4011}
    assert "the server went away" in caplog.text
    monkeypatch.undo()
    await socket.disconnect()
    assert hub._clients == {}


class RefusesOne(HubTopicsConsumer):
    async def subscribe(self, topics):
        if "secret" in topics:
            raise RequestError("secret is not for you")
        await super().subscribe(topics)


async def test_consumer_that_refuses_a_topic_says_so_and_joins_none(connect, publisher):
    socket = await connect(RefusesOne)
    assert await ask(socket, subscribe=["secret", "a"]) == {"error": "secret is not for you"}
    assert await ask(socket, subscribe=["a"]) == {"subscribed": 1}
    await publisher.publish("a", b"")
    assert len(await receive(socket, 1)) == 1


async def test_frame_is_never_larger_than_a_stock_server_sends(connect, publisher):
    socket = await connect()
    await ask(socket, subscribe=["a"])
    bodies = [b"x" * 4_000] * 600 + [b"y" * 1_500_000, b"z"]
    for body in bodies:
        await publisher.publish("a", body)
    frames, got = [], []
    while len(got) < len(bodies):
        frames.append(await socket.receive_from())
        got += decode(frames[-1])
        await socket.send_json_to({"received": sum(map(len, frames))})
    assert [record.body for record in got] == bodies
    large = [frame for frame in frames if len(frame) > 1_000_000]
    assert [len(decode(frame)) for frame in large] == [1]


async def test_client_that_cannot_be_sent_to_is_closed_and_the_reason_is_logged(
    connect, publisher, monkeypatch, caplog
):
    socket = await connect()
    await ask(socket, subscribe=["a"])
    send = HubTopicsConsumer.send

    async def refuse(self, text_data=None, bytes_data=None, close=False):
        if bytes_data is not None:
            raise ValueError("exceeding payload limit")
        await send(self, text_data, bytes_data, close)

    monkeypatch.setattr(HubTopicsConsumer, "send", refuse)
    await publisher.publish("a", b"x")
    assert await socket.receive_output() == {"type": "websocket.close", "code": 4011}
    assert "exceeding payload limit" in caplog.text


async def test_client_is_told_when_the_hub_stops(connect, hub):
    socket = await connect()
    await ask(socket, subscribe=["a"])
    await hub.close()
    assert await socket.receive_output() == {"type": "websocket.close", "code": 4011}


async def test_client_that_leaves_leaves_nothing_behind(hub):
    socket = WebsocketCommunicator(HubTopicsConsumer.as_asgi(), "/ws/topics/")
    await socket.connect()
    await ask(socket, subscribe=["a"])
    await socket.disconnect()
    assert not hub.layer.groups.get("topic.a")
    assert hub._clients == {}
