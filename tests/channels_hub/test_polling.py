import asyncio
import gc
import time
import weakref

import pytest

from channels_hub import Hub, polling
from channels_hub.polling import PollSessions, TooManySessions
from channels_hub.records import LENGTH, unpack


def sequences(batch):
    return [unpack(record[LENGTH.size :]).sequence for record in batch.records]


A = frozenset({"a"})


async def test_first_poll_is_answered_at_once_and_nothing_is_lost_from_there(sessions, publisher):
    first = await sessions.poll(A, None, 10)
    assert (first.records, first.gaps) == ([], [])
    await publisher.publish("a", b"")
    second = await sessions.poll(A, first.cursor, 10)
    assert (sequences(second), second.gaps) == ([1], [])


async def test_what_was_published_before_the_first_poll_is_not_given(sessions, publisher):
    await publisher.publish("a", b"")
    first = await sessions.poll(A, None, 10)
    assert (await sessions.poll(A, first.cursor, 0.05)).records == []


async def test_poll_that_times_out_loses_nothing(sessions, publisher):
    cursor = (await sessions.poll(A, None, 10)).cursor
    for _ in range(3):
        cursor = (await sessions.poll(A, cursor, 0.01)).cursor
    await publisher.publish("a", b"")
    assert sequences(await sessions.poll(A, cursor, 10)) == [1]


async def test_poll_waits_for_the_next_message(sessions, publisher):
    cursor = (await sessions.poll(A, None, 10)).cursor
    waiting = asyncio.create_task(sessions.poll(A, cursor, 10))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    await publisher.publish("a", b"")
    assert sequences(await waiting) == [1]


async def test_batch_whose_answer_was_lost_is_given_again(sessions, publisher):
    first = await sessions.poll(A, None, 10)
    await publisher.publish("a", b"")
    lost = await sessions.poll(A, first.cursor, 10)
    await publisher.publish("a", b"")
    again = await sessions.poll(A, first.cursor, 10)
    assert sequences(again) == sequences(lost) == [1]
    assert sequences(await sessions.poll(A, again.cursor, 10)) == [2]


async def test_client_that_goes_to_another_process_loses_nothing(sessions, elsewhere, publisher):
    first = await sessions.poll(A, None, 10)
    await publisher.publish("a", b"")
    seen = await sessions.poll(A, first.cursor, 10)
    await publisher.publish("a", b"")
    await publisher.publish("b", b"")
    moved = await elsewhere.poll(A, seen.cursor, 10)
    assert (sequences(moved), moved.gaps) == ([2], [])
    await publisher.publish("a", b"")
    assert sequences(await elsewhere.poll(A, moved.cursor, 10)) == [3]


async def test_client_that_moves_before_it_saw_anything_loses_nothing(
    sessions, elsewhere, publisher
):
    await publisher.publish("a", b"")
    first = await sessions.poll(A, None, 10)
    await publisher.publish("a", b"")
    moved = await elsewhere.poll(A, first.cursor, 10)
    assert (sequences(moved), moved.gaps) == ([2], [])


async def test_client_that_keeps_moving_gets_each_message_once(sessions, elsewhere, publisher):
    cursor = (await sessions.poll(A, None, 10)).cursor
    await elsewhere.poll(A, cursor, 0)
    got = []
    for turn in range(20):
        for _ in range(3):
            await publisher.publish("a", b"")
        batch = await (elsewhere, sessions)[turn % 2].poll(A, cursor, 10)
        got += sequences(batch)
        cursor = batch.cursor
    while (batch := await sessions.poll(A, cursor, 0.05)).records:
        got += sequences(batch)
        cursor = batch.cursor
    assert got == list(range(1, 61))


async def test_what_nobody_remembers_is_answered_as_a_gap(hub, sessions, elsewhere, publisher):
    first = await sessions.poll(A, None, 10)
    await publisher.publish("a", b"")
    await hub.close()
    moved = await elsewhere.poll(A, first.cursor, 10)
    assert (moved.records, moved.gaps) == ([], ["a"])
    await publisher.publish("a", b"")
    then = await elsewhere.poll(A, moved.cursor, 10)
    assert (sequences(then), then.gaps) == ([2], [])


async def test_gap_is_named_once_however_often_the_client_moves(
    hub, sessions, other_hub, elsewhere, layer, monkeypatch
):
    monkeypatch.setattr(polling, "ON_THE_WAY_NS", 0)
    first = await sessions.poll(A, None, 10)
    await hub.close()
    moved = await elsewhere.poll(A, first.cursor, 10)
    third = Hub(layer)
    await third.start()
    again = await PollSessions.of(third).poll(A, moved.cursor, 0)
    await third.close()
    assert (moved.gaps, again.gaps) == (["a"], [])


async def test_process_that_a_client_was_at_for_a_while_vouches_for_it_by_itself(
    hub, sessions, other_hub, elsewhere, layer, publisher, monkeypatch
):
    monkeypatch.setattr(polling, "ON_THE_WAY_NS", 50_000_000)
    first = await sessions.poll(A, None, 10)
    moved = await elsewhere.poll(A, first.cursor, 0)
    await hub.close()
    await asyncio.sleep(0.06)
    await publisher.publish("a", b"")
    then = await elsewhere.poll(A, moved.cursor, 10)
    third = Hub(layer)
    await third.start()
    again = await PollSessions.of(third).poll(A, then.cursor, 0)
    await third.close()
    assert (sequences(then), again.gaps) == ([1], [])


async def test_poll_that_waits_for_an_earlier_one_waits_no_longer_than_it_said(sessions):
    first = await sessions.poll(A, None, 10)
    began = time.monotonic()
    await asyncio.gather(*(sessions.poll(A, first.cursor, 0.5) for _ in range(4)))
    assert time.monotonic() - began < 1.5


async def test_poll_that_its_client_went_on_from_while_it_waited_loses_nothing(sessions, publisher):
    """It is not answered with the last batch, behind one that it may not have had."""
    first = await sessions.poll(A, None, 10)
    await publisher.publish("a", b"")
    second = await sessions.poll(A, first.cursor, 10)
    ahead = asyncio.create_task(sessions.poll(A, second.cursor, 10))
    await asyncio.sleep(0)
    late = asyncio.create_task(sessions.poll(A, first.cursor, 10))
    await asyncio.sleep(0)
    await publisher.publish("a", b"")
    assert sequences(await ahead) == [2]
    assert sequences(await late) == [1, 2]


async def test_poll_whose_session_another_has_taken_the_place_of_goes_on_in_one_of_its_own(
    sessions, publisher
):
    first = await sessions.poll(A, None, 10)
    waiting = asyncio.create_task(sessions.poll(A, first.cursor, 10))
    await asyncio.sleep(0)
    other = await sessions.poll(frozenset({"b"}), first.cursor, 0)
    await publisher.publish("a", b"")
    assert (other.records, sequences(await asyncio.wait_for(waiting, 5))) == ([], [1])


async def test_hub_is_gone_with_its_sessions(layer):
    hub = Hub(layer)
    await hub.start()
    await PollSessions.of(hub).poll(A, None, 0)
    for session in list(hub.polls._sessions.values()):
        await hub.polls._end(session)
    hub.polls._sweeper.cancel()
    await hub.close()
    gone = weakref.ref(hub)
    del hub, session
    await asyncio.sleep(0)
    gc.collect()
    assert gone() is None


async def test_answer_is_no_larger_than_a_frame(sessions, elsewhere, publisher, monkeypatch):
    monkeypatch.setattr(polling, "MOST_BYTES", 1_000)
    batch = await sessions.poll(A, None, 10)
    sizes = [100, 5_000] + [300] * 8
    for size in sizes:
        await publisher.publish("a", b"x" * size)
    got = []
    for process in (sessions, *[elsewhere] * 6):
        batch = await process.poll(A, batch.cursor, 0.1)
        assert len(batch.records) == 1 or sum(map(len, batch.records)) <= 1_000
        got += sequences(batch)
    assert got == list(range(1, len(sizes) + 1))


async def test_what_is_older_than_the_history_is_answered_as_a_gap(
    hub, sessions, elsewhere, publisher
):
    hub.history.limit_bytes = 200
    first = await sessions.poll(A, None, 10)
    for _ in range(10):
        await publisher.publish("a", b"x" * 50)
    moved = await elsewhere.poll(A, first.cursor, 10)
    assert moved.gaps == ["a"]
    assert sequences(moved) == [9, 10]


async def test_client_that_polls_too_rarely_is_caught_up_from_the_history(
    sessions, publisher, monkeypatch
):
    monkeypatch.setattr(polling, "OUTBOX_LIMIT", 5)
    first = await sessions.poll(A, None, 10)
    for _ in range(50):
        await publisher.publish("a", b"")
    await asyncio.sleep(0.05)
    late = await sessions.poll(A, first.cursor, 10)
    assert (sequences(late), late.gaps) == (list(range(1, 51)), [])


async def test_long_history_comes_in_several_batches(sessions, elsewhere, publisher, monkeypatch):
    monkeypatch.setattr(polling, "MOST_RECORDS", 7)
    monkeypatch.setattr("channels_hub.recall.CHUNK_BYTES", 100)
    batch = await sessions.poll(A, None, 10)
    for _ in range(20):
        await publisher.publish("a", b"")
    got = []
    while len(got) < 20:
        batch = await elsewhere.poll(A, batch.cursor, 10)
        assert len(batch.records) <= 7
        got += sequences(batch)
    assert got == list(range(1, 21))


async def test_session_ends_when_its_client_stays_away(hub, sessions, layer, monkeypatch):
    monkeypatch.setattr(polling, "LEASE_S", 0.08)
    await sessions.poll(A, None, 10)
    assert layer.groups["topic.a"]
    await asyncio.sleep(0.3)
    assert not layer.groups.get("topic.a")


async def test_cursor_of_other_topics_starts_a_session_of_its_own(sessions, publisher):
    first = await sessions.poll(A, None, 10)
    batch = await sessions.poll(frozenset({"b"}), first.cursor, 0)
    assert batch.gaps == ["b"]


async def test_session_whose_client_asks_for_other_topics_is_ended(sessions, layer):
    first = await sessions.poll(A, None, 10)
    await sessions.poll(frozenset({"b"}), first.cursor, 0)
    assert layer.groups["topic.b"]
    assert not layer.groups.get("topic.a")


async def test_poll_that_is_cancelled_while_it_asks_leaves_nothing_behind(
    sessions, elsewhere, layer
):
    first = await sessions.poll(A, None, 10)
    asking = asyncio.create_task(elsewhere.poll(frozenset({"b"}), first.cursor, 10))
    await asyncio.sleep(0.05)
    assert layer.groups["topic.b"]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert not layer.groups.get("topic.b")


async def test_client_beyond_the_room_for_clients_is_turned_away_until_one_leaves(
    sessions, monkeypatch
):
    monkeypatch.setattr(polling, "MOST_SESSIONS", 2)
    monkeypatch.setattr(polling, "LEASE_S", 0.4)
    first, _ = [await sessions.poll(A, None, 10) for _ in range(2)]
    with pytest.raises(TooManySessions, match="2 clients poll here"):
        await sessions.poll(A, None, 10)
    # One that is here may change its topics, and what it leaves is free.
    await sessions.poll(frozenset({"b"}), first.cursor, 0)
    await asyncio.sleep(0.8)
    await sessions.poll(A, None, 10)
