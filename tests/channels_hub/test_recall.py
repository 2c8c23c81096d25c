"""What hubs remember for a polling client that moved, and in which order it comes to it."""

import asyncio
import time

import pytest

from channels_hub import Hub, Outbox, recall
from channels_hub.cursor import Cursor
from channels_hub.history import Remembered
from channels_hub.polling import PollSessions
from channels_hub.recall import Recollection
from channels_hub.records import HEADER, LENGTH, unpack

A, AB = frozenset({"a"}), frozenset({"a", "b"})


def sequences(batch):
    return [unpack(record[LENGTH.size :]).sequence for record in batch.records]


@pytest.mark.parametrize(
    ("limit", "given"),
    [("polling.BACKLOG_BYTES", 3), ("recall.ANSWER_BYTES", 3), ("recall.HELD_BYTES", 0)],
)
async def test_what_finds_no_room_on_its_way_to_a_client_that_moved_is_a_gap(
    sessions, elsewhere, publisher, monkeypatch, limit, given
):
    monkeypatch.setattr(f"channels_hub.{limit}", 3 * 100)
    first = await sessions.poll(A, None, 10)
    for _ in range(20):
        await publisher.publish("a", b"x" * (100 - LENGTH.size - HEADER.size - 1))
    moved = await elsewhere.poll(A, first.cursor, 10)
    assert (sequences(moved), moved.gaps) == (list(range(21 - given, 21)), ["a"])
    await publisher.publish("a", b"")
    # What it was given makes room for the next one.
    then = await elsewhere.poll(A, moved.cursor, 10)
    assert (sequences(then), then.gaps) == ([21], [])
    assert sequences(await sessions.poll(A, then.cursor, 0)) == []


async def test_process_without_polls_vouches_for_its_topics(
    sessions, hub, elsewhere, layer, publisher, caplog
):
    sockets = Hub(layer)
    await sockets.start()
    await sockets.subscribe(Outbox(), A)
    first = await sessions.poll(A, None, 10)
    await publisher.publish("a", b"")
    await asyncio.sleep(0)
    await hub.close()
    moved = await elsewhere.poll(A, first.cursor, 10)
    await sockets.close()
    assert (sequences(moved), moved.gaps) == ([1], [])
    assert "no use" not in caplog.text


async def everything(sessions, cursor):
    """Return topic -> the sequences that a client gets from ``cursor`` on, and the gaps."""
    got, gaps = {"a": [], "b": []}, []
    while (batch := await sessions.poll(AB, cursor, 0.1)).records or batch.gaps:
        for record in (unpack(record[LENGTH.size :]) for record in batch.records):
            got[record.topic].append(record.sequence)
        gaps += batch.gaps
        cursor = batch.cursor
    return got, gaps


async def test_hubs_that_remember_one_topic_further_than_another_lose_nothing_of_either(
    hub, other_hub, layer, publisher, monkeypatch
):
    """The question is under way while more is published: one hub answers before it, one after."""
    await other_hub.subscribe(Outbox(), "b")
    third = Hub(layer)
    await third.start()
    await third.subscribe(Outbox(), "a")
    cursor = Cursor("elsewhere", 0, time.time_ns(), {})
    for topic in "ab":
        await publisher.publish(topic, b"")
    group_send = layer.group_send

    async def reach_one_after_another(group, message):
        if message["type"] != "hub.recall":
            await group_send(group, message)
            return
        await layer.send(other_hub.channel, message)
        for topic in "ba":
            await publisher.publish(topic, b"")
        for channel in (third.channel, hub.channel):
            await layer.send(channel, message)

    monkeypatch.setattr(layer, "group_send", reach_one_after_another)
    got = await everything(PollSessions.of(hub), cursor)
    await third.close()
    assert got == ({"a": [1, 2], "b": [1, 2]}, [])


async def test_record_that_comes_late_behind_what_was_recalled_is_given_and_no_other_twice(
    hub, publisher
):
    """As where clocks of machines differ, and with them what a channel calls first."""
    other = Outbox()
    await hub.subscribe(other, AB)
    for topic in "aba":
        await publisher.publish(topic, b"")
    kept = await other.batch()
    assert len(kept) == 3

    class Recaller:
        async def recall(self, topics, positions, since_ns):
            found = {}
            for enclosed in (kept[0], kept[2]):
                record = unpack(enclosed[LENGTH.size :])
                place = record.publisher, record.position
                found[place] = Remembered(record.timestamp_ns, *place, record.topic, enclosed)
            return Recollection(found, {"a", "b"})

    sessions = PollSessions(hub, Recaller())
    moved = await sessions.poll(AB, Cursor("elsewhere", 0, 0, {}), 0)
    assert sequences(moved) == [1, 2]
    for enclosed in kept:
        hub.hand_out(unpack(enclosed[LENGTH.size :]).topic, enclosed[LENGTH.size :])
    late = await sessions.poll(AB, moved.cursor, 1)
    assert [unpack(record[LENGTH.size :]).topic for record in late.records] == ["b"]
    assert late.cursor.positions == moved.cursor.positions
    assert await everything(sessions, late.cursor) == ({"a": [], "b": []}, [])


async def test_record_that_came_here_before_it_came_to_the_hub_that_vouches_is_not_lost(
    hub, other_hub, layer, publisher, monkeypatch
):
    """A publisher reaches one process after another: a question can overtake it between two."""
    await other_hub.subscribe(Outbox(), "a")
    cursor = Cursor("elsewhere", 0, time.time_ns(), {})
    await hub.subscribe(Outbox(), "a")
    await publisher.publish("a", b"")
    await asyncio.sleep(0)
    group_send = layer.group_send

    async def reach_here_only(group, message):
        await layer.send(hub.channel, message)

    monkeypatch.setattr(layer, "group_send", reach_here_only)
    await publisher.publish("a", b"")
    await asyncio.sleep(0)

    async def reach_here_last(group, message):
        if message["type"] == "hub.recall":
            await layer.send(other_hub.channel, message)
            await asyncio.sleep(0.1)
        await group_send(group, message)

    monkeypatch.setattr(layer, "group_send", reach_here_last)
    moved = await PollSessions.of(hub).poll(A, cursor, 10)
    assert (sequences(moved), moved.gaps) == ([1, 2], [])


async def test_record_that_was_on_its_way_when_a_topic_was_joined_here_is_not_lost(
    hub, other_hub, layer, publisher, monkeypatch
):
    """Its publisher knew of one member of the group, and had yet to send to it."""
    await other_hub.subscribe(Outbox(), "a")
    cursor = Cursor("elsewhere", 0, time.time_ns(), {})

    async def reach_who_was_there(group, message):
        await asyncio.sleep(recall.SETTLE_S / 2)
        await layer.send(other_hub.channel, message)

    with monkeypatch.context() as patch:
        patch.setattr(layer, "group_send", reach_who_was_there)
        on_its_way = asyncio.create_task(publisher.publish("a", b""))
        await asyncio.sleep(0)
    moved = await PollSessions.of(hub).poll(A, cursor, 10)
    await on_its_way
    assert (sequences(moved), moved.gaps) == ([1], [])


async def test_process_that_vouches_for_all_topics_itself_asks_nobody(
    sessions, elsewhere, layer, publisher, monkeypatch
):
    first = await elsewhere.poll(AB, None, 10)
    second = await sessions.poll(AB, None, 10)
    for topic in "ab":
        await publisher.publish(topic, b"")
    asked = []

    async def group_send(group, message):
        asked.append(message["type"])

    monkeypatch.setattr(layer, "group_send", group_send)
    moved = await elsewhere.poll(AB, second.cursor, 10)
    assert first.cursor.since_ns < second.cursor.since_ns
    assert (len(moved.records), moved.gaps, asked) == (2, [], [])
