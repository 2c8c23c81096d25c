"""Long polling on a channel a client: the plain way to deliver, in one process."""

import base64
import json
import logging

import pytest
from channels.layers import get_channel_layer
from channels.testing import HttpCommunicator

from channels_hub.publisher import Publisher
from testproject.topics import GroupPollConsumer


async def poll(query):
    asked = HttpCommunicator(GroupPollConsumer.as_asgi(), "GET", f"/poll/?{query}")
    answer = await asked.get_response(timeout=10)
    assert answer["status"] == 200
    return json.loads(answer["body"])


@pytest.fixture
def publisher():
    """Publish to the layer that polls by group listen on."""
    return Publisher(get_channel_layer(), window=0)


async def test_poll_by_group_gets_every_message_of_its_topics(publisher):
    answer, bodies = await poll("topic=a&topic=b"), []
    for number in range(60):
        await publisher.publish("abc"[number % 3], str(number).encode())
    while len(bodies) < 40:
        answer = await poll(f"topic=a&topic=b&timeout=1&cursor={answer['cursor']}")
        assert answer["messages"]
        bodies += [base64.b64decode(message["body"]) for message in answer["messages"]]
        assert answer["gaps"] == []
    assert bodies == [str(number).encode() for number in range(60) if number % 3 < 2]


async def test_poll_by_group_whose_channel_failed_is_told_of_the_gap(
    publisher, monkeypatch, caplog
):
    layer = get_channel_layer()
    receive = layer.receive

    async def fail(channel):
        await receive(channel)
        raise ConnectionError("the server went away")

    monkeypatch.setattr(layer, "receive", fail)
    answer = await poll("topic=a")
    with caplog.at_level(logging.ERROR):
        await publisher.publish("a", b"lost")
        answer = await poll(f"topic=a&timeout=1&cursor={answer['cursor']}")
    assert (answer["messages"], answer["gaps"]) == ([], ["a"])
    assert "a polling client's channel failed" in caplog.text
