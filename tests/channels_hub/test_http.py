import base64
import json

import pytest
from channels.testing import HttpCommunicator

from channels_hub import Hub
from channels_hub.http import (
    LARGEST_BODY,
    LONGEST_HEADER,
    PollConsumer,
    PollError,
    gaps_header,
    parse_poll,
)
from channels_hub.publisher import Publisher
from channels_hub.records import decode


@pytest.fixture
async def publisher():
    """Publish over the layer that the consumer finds in the settings."""
    hub = await Hub.current()
    yield Publisher(hub.layer, window=0)
    await hub.close()


async def ask(method, path, body=b"", headers=(), consumer=PollConsumer):
    communicator = HttpCommunicator(consumer.as_asgi(), method, path, body, list(headers))
    return await communicator.get_response()


async def test_poll_by_url_gives_messages_as_json(publisher):
    first = json.loads((await ask("GET", "/poll/?topic=a&topic=b"))["body"])
    assert (first["messages"], first["gaps"]) == ([], [])
    await publisher.publish("b", b"\x00body")
    answer = await ask("GET", f"/poll/?topic=a&topic=b&cursor={first['cursor']}")
    (message,) = json.loads(answer["body"])["messages"]
    assert (message["topic"], message["sequence"]) == ("b", 1)
    assert base64.b64decode(message["body"]) == b"\x00body"


async def test_poll_by_post_gives_the_socket_s_frame_where_asked(publisher):
    binary = [(b"accept", b"application/octet-stream")]
    topics = [f"t{number}" for number in range(1_000)]
    first = await ask("POST", "/poll/", json.dumps({"topics": topics}).encode(), binary)
    await publisher.publish("t999", b"body")
    asked = {"topics": topics, "cursor": dict(first["headers"])[b"X-Cursor"].decode()}
    answer = await ask("POST", "/poll/", json.dumps(asked).encode(), binary)
    (record,) = decode(answer["body"])
    assert (record.topic, record.body) == ("t999", b"body")
    assert dict(answer["headers"])[b"X-Gaps"] == b"[]"


@pytest.mark.parametrize(
    ("method", "query", "body", "complaint"),
    [
        ("GET", b"", b"", "names 1 to"),
        ("GET", b"topic=a%20b", b"", "is not a topic"),
        ("GET", b"topic=a&cursor=nonsense", b"", "no cursor"),
        ("GET", b"topic=a&timeout=-1", b"", "waits for 0 to 25"),
        ("GET", b"topic=a&timeout=nan", b"", "waits for 0 to 25"),
        ("GET", b"topic=a&timeout=soon", b"", "cannot be understood"),
        ("GET", b"&".join([b"topic=a"] * 20_000), b"", "cannot be understood"),
        ("POST", b"", b"", "cannot be understood"),
        ("POST", b"", b"[]", "a JSON object"),
        ("POST", b"", b'{"topics": "a"}', "a JSON object"),
        ("POST", b"", b"[" * 100_000, "cannot be understood"),
        ("POST", b"", b'{"topics": ["a"], "timeout": 1%s}' % (b"0" * 400), "cannot be understood"),
        ("POST", b"", b'{"topics": [1]}', "is not a topic"),
        ("POST", b"", b'{"topics": ["a"], "cursor": 7}', "no cursor"),
        ("POST", b"", json.dumps({"topics": [str(n) for n in range(10_001)]}).encode(), "10001"),
    ],
)
def test_poll_that_makes_no_sense_is_refused_with_the_reason(method, query, body, complaint):
    with pytest.raises(PollError, match=complaint):
        parse_poll(method, query, body)


async def test_poll_that_makes_no_sense_is_answered_with_400():
    answer = await ask("GET", "/poll/?topic=")
    assert answer["status"] == 400
    assert "topics" in json.loads(answer["body"])["error"]


async def test_poll_larger_than_any_that_makes_sense_is_not_read():
    answer = await ask("POST", "/poll/", b" " * (LARGEST_BODY + 1))
    assert answer["status"] == 413
    assert str(LARGEST_BODY) in json.loads(answer["body"])["error"]


async def test_poll_for_which_there_is_no_room_is_answered_with_503(publisher, monkeypatch):
    monkeypatch.setattr("channels_hub.polling.MOST_SESSIONS", 2)
    cursors = [json.loads((await ask("GET", "/poll/?topic=a"))["body"])["cursor"] for _ in "12"]
    assert (await ask("GET", "/poll/?topic=a"))["status"] == 503
    await publisher.publish("a", b"")
    for cursor in cursors:
        answer = await ask("GET", f"/poll/?topic=a&cursor={cursor}")
        assert len(json.loads(answer["body"])["messages"]) == 1


async def test_poll_by_another_method_is_answered_with_405():
    assert (await ask("DELETE", "/poll/?topic=a"))["status"] == 405


def test_gaps_too_many_for_a_header_stand_for_all():
    assert gaps_header(["a"]) == b'["a"]'
    assert gaps_header(["x" * 80] * (LONGEST_HEADER // 80)) == b"*"


class RefusesOne(PollConsumer):
    async def check(self, topics):
        if "secret" in topics:
            raise PollError("secret is not for you")


async def test_consumer_that_refuses_a_topic_says_so(publisher):
    refused = await ask("GET", "/poll/?topic=a&topic=secret", consumer=RefusesOne)
    assert (refused["status"], json.loads(refused["body"])) == (
        400,
        {"error": "secret is not for you"},
    )
    assert (await ask("GET", "/poll/?topic=a", consumer=RefusesOne))["status"] == 200
