"""A feed, its parts, and what publishes it: the command, and the server itself."""

import asyncio
import json

import pytest
from channels.testing import HttpCommunicator
from django.core.management import CommandError, call_command

from channels_hub import Hub, Outbox
from channels_hub.records import LENGTH, unpack
from testproject.publishing import Feed, FeedError, publish
from testproject.topics import PublishConsumer


@pytest.mark.parametrize(
    "wrong",
    [
        {"topics": 0},
        {"topics": 2, "publishers": 3},
        {"rate": 0},
        {"message_bytes": 36},
        {"message_bytes": 70_000},
        {"count": 0},
        {"topics": 1.5},
        {"seconds": -1},
    ],
)
def test_feed_that_cannot_be_published_names_the_option(wrong):
    with pytest.raises(FeedError, match=list(wrong)[-1]):
        Feed(**wrong)


def test_parts_of_a_feed_add_up_to_it():
    parts = Feed(topics=10, publishers=3, count=11, rate=30.0).parts()
    assert [part.count for part in parts] == [4, 4, 3]
    assert [part.rate for part in parts] == [10.0] * 3
    topics = [topic for part in parts for topic in part.own_topics()]
    assert sorted(topics) == [f"t{number:06d}" for number in range(10)]


async def test_feed_has_the_size_the_order_and_the_number_that_were_asked_for():
    hub, outbox = await Hub.current(), Outbox()
    await hub.subscribe(outbox, [f"t{number:06d}" for number in range(4)])
    told = await publish(hub.layer, Feed(topics=4, publishers=2, count=10), asyncio.Event())
    records = []
    while len(records) < 10:
        records += await outbox.batch()
    await hub.close()
    assert told["published"] == 10
    assert {len(record) for record in records} == {1_024 + LENGTH.size}
    topics = {}
    for record in (unpack(record[LENGTH.size :]) for record in records):
        topics.setdefault(record.topic, []).append(record.sequence)
    assert topics == {
        "t000000": [1, 2, 3],
        "t000001": [1, 2, 3],
        "t000002": [1, 2],
        "t000003": [1, 2],
    }


async def test_feed_ends_when_it_is_told_to():
    stop = asyncio.Event()
    stop.set()
    told = await publish((await Hub.current()).layer, Feed(rate=1.0), stop)
    assert told["published"] == 0


def test_command_names_what_is_wrong():
    with pytest.raises(CommandError, match="--rate 0: give messages/s above 0"):
        call_command("publish", rate=0)


def test_command_says_what_to_do_about_a_layer_that_does_not_leave_its_process():
    with pytest.raises(CommandError, match="POST the feed to the server's own /publish/"):
        call_command("publish")


async def asked(method, body):
    return await asked_raw(method, json.dumps(body).encode())


async def asked_raw(method, body):
    consumer = PublishConsumer.as_asgi()
    answer = await HttpCommunicator(consumer, method, "/publish/", body).get_response(timeout=10)
    return answer["status"], json.loads(answer["body"])


async def test_server_publishes_a_feed_and_says_what_it_did():
    status, told = await asked("POST", {"topics": 2, "count": 3})
    assert (status, told["published"]) == (200, 3)


@pytest.mark.parametrize(
    "body", [b"[]", b'{"topics": 0}', b'{"colour": "red"}', b'"x"', b"{", b"[" * 100_000]
)
async def test_server_refuses_what_is_no_feed(body):
    status, told = await asked_raw("POST", body)
    assert status == 400
    assert "this is no feed" in told["error"]


async def test_server_publishes_only_when_it_is_posted_to():
    assert (await asked("GET", {}))[0] == 405


async def test_server_leaves_publishing_to_the_command_on_other_layers(monkeypatch):
    monkeypatch.setattr("testproject.topics.feed_layer", lambda: object())
    status, told = await asked("POST", {})
    assert status == 409
    assert "manage.py publish" in told["error"]
