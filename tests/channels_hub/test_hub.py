import asyncio
import logging
import time

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer

from channels_hub import Hub, Outbox
from channels_hub.hub import counters, dropped_by
from channels_hub.outbox import Ended
from channels_hub.publisher import Publisher
from channels_hub.records import decode
from channels_ipc import IPCChannelLayer


def seen(frames):
    return [(record.topic, record.sequence) for record in decode(b"".join(frames))]


async def test_hub_delivers_to_every_client_of_the_topic_and_to_nobody_else(hub, publisher, take):
    one, two, other = Outbox(), Outbox(), Outbox()
    await hub.subscribe(one, {"a"})
    await hub.subscribe(two, {"a", "b"})
    await hub.subscribe(other, {"c"})
    await publisher.publish("a", b"1")
    await publisher.publish("b", b"2")
    assert seen(await take(one, 1)) == [("a", 1)]
    assert seen(await take(two, 2)) == [("a", 1), ("b", 1)]
    assert await take(other, 0) == []


async def test_hub_joins_a_topic_once_for_all_its_clients(hub, layer, publisher, take):
    outboxes = [Outbox() for _ in range(20)]
    await asyncio.gather(*(hub.subscribe(outbox, {"a"}) for outbox in outboxes))
    assert len(layer.groups["topic.a"]) == 1
    await publisher.publish("a", b"")
    for outbox in outboxes:
        assert len(await take(outbox, 1)) == 1
    assert (hub.received, hub.delivered) == (1, 20)


async def test_subscription_is_live_when_subscribe_returns(hub, publisher, take):
    for round_ in range(50):
        outbox, topic = Outbox(), f"t{round_ % 5}"
        await hub.subscribe(outbox, {topic})
        await publisher.publish(topic, b"")
        assert len(await take(outbox, 1)) == 1
        await hub.unsubscribe(outbox, {topic})


async def test_who_comes_or_goes_between_two_messages_is_known_at_the_next(hub, publisher, take):
    first, second = Outbox(), Outbox()
    await hub.subscribe(first, ["a"])
    await publisher.publish("a", b"1")
    assert len(await take(first, 1)) == 1
    await hub.subscribe(second, ["a"])
    await publisher.publish("a", b"2")
    assert len(await take(first, 1)) == len(await take(second, 1)) == 1
    await hub.unsubscribe(first, ["a"])
    await publisher.publish("a", b"3")
    assert len(await take(second, 1)) == 1
    assert await take(first, 0) == []


async def test_hub_leaves_a_topic_with_its_last_client(hub, layer):
    one, two = Outbox(), Outbox()
    await hub.subscribe(one, {"a"})
    await hub.subscribe(two, {"a"})
    await hub.unsubscribe(one, {"a"})
    assert layer.groups["topic.a"]
    await hub.unsubscribe(two, {"a"})
    assert not layer.groups.get("topic.a")


async def test_client_that_comes_while_the_last_one_leaves_misses_nothing(hub, publisher, take):
    for _ in range(50):
        leaver, comer = Outbox(), Outbox()
        await hub.subscribe(leaver, {"a"})
        await asyncio.gather(hub.unsubscribe(leaver, {"a"}), hub.subscribe(comer, {"a"}))
        await publisher.publish("a", b"")
        assert len(await take(comer, 1)) == 1
        await hub.unsubscribe(comer, {"a"})


@pytest.mark.parametrize("doing", ["subscribe", "unsubscribe"])
async def test_client_of_few_topics_does_not_wait_for_one_of_many(layer, hub, doing):
    many, few = [f"t{number}" for number in range(1_000)], Outbox()
    busy = Outbox()
    if doing == "unsubscribe":
        await hub.subscribe(busy, many)
    for name in ("group_add", "group_discard"):
        setattr(layer, name, slowly(getattr(layer, name)))
    at_work = asyncio.create_task(getattr(hub, doing)(busy, many))
    await asyncio.sleep(0)
    await hub.subscribe(few, ["a"])
    assert not at_work.done()
    await at_work


async def test_client_of_few_topics_does_not_wait_until_all_are_joined_again(layer, hub):
    await hub.subscribe(Outbox(), [f"t{number}" for number in range(1_000)])
    renewed, add = [], slowly(layer.group_add)

    async def noted(group, channel):
        renewed.append(group)
        await add(group, channel)

    layer.group_add, layer.group_expiry = noted, 0
    renewal = asyncio.create_task(hub._renew())
    for _ in range(3):
        await asyncio.sleep(0)
    await hub.subscribe(Outbox(), ["a"])
    renewal.cancel()
    assert 0 < len(renewed) < 1_000


def slowly(call):
    """Return ``call`` as a layer on a network makes it: the answer takes a turn of the loop."""

    async def called(group, channel):
        await asyncio.sleep(0)
        await call(group, channel)

    return called


MANY = [f"t{number:03}" for number in range(200)]


async def test_what_comes_while_a_topic_is_about_to_be_left_is_remembered(layer, hub, publisher):
    """For as long as it is not left, the hub vouches for it."""
    outbox, since_ns = Outbox(), time.time_ns()
    await hub.subscribe(outbox, MANY)
    layer.group_discard = slowly(layer.group_discard)
    leaving = asyncio.create_task(hub.unsubscribe(outbox, MANY))
    await asyncio.sleep(0)
    await publisher.publish(MANY[-1], b"")
    for _ in range(3):  # it was put into the channel, and is taken off before the topic is left
        await asyncio.sleep(0)
    assert (hub.ignored, leaving.done()) == (1, False)
    assert hub.history.covers(MANY[-1], {}, time.time_ns())
    assert len(hub.history.after(MANY, {}, since_ns)) == 1
    await leaving


async def test_topics_of_a_client_whose_handler_is_cancelled_are_left(layer, hub):
    outbox = Outbox()
    await hub.subscribe(outbox, MANY)
    layer.group_discard = slowly(layer.group_discard)
    leaving = asyncio.create_task(hub.unsubscribe(outbox, MANY))
    await asyncio.sleep(0)
    leaving.cancel()
    for _ in range(100):
        await asyncio.sleep(0)
    assert leaving.cancelled()
    assert not any(layer.groups.get(f"topic.{topic}") for topic in MANY)


async def test_layer_that_fails_to_leave_some_topics_is_asked_to_leave_the_others(layer, hub):
    outbox, discard = Outbox(), layer.group_discard
    await hub.subscribe(outbox, MANY)

    async def fail_once(group, channel):
        if group == "topic.t000":
            raise OSError("out of reach")
        await discard(group, channel)

    layer.group_discard = fail_once
    with pytest.raises(OSError, match="out of reach"):
        await hub.unsubscribe(outbox, MANY)
    assert [topic for topic in MANY if layer.groups.get(f"topic.{topic}")] == ["t000"]


async def test_hub_that_stood_still_until_messages_expired_tells_its_clients(layer, caplog):
    layer.expiry = 1.0
    hub, outbox = Hub(layer), Outbox()
    await hub.start()
    await hub.subscribe(outbox, {"a"})
    await asyncio.sleep(0.4)
    assert not hub.closed
    time.sleep(1.1)  # noqa: ASYNC251 - it is the loop that is to stand still
    with pytest.raises(Ended, match=r"^the process stood still for some 1 s$"):
        await asyncio.wait_for(outbox.batch(), 5)
    assert "stood still" in caplog.text


async def test_one_that_cannot_be_answered_does_not_stop_the_hub(
    hub, layer, publisher, take, caplog
):
    outbox = Outbox()
    await hub.subscribe(outbox, {"a"})
    await layer.send(hub.channel, {"type": "hub.barrier", "barrier": 1, "reply_to": ""})
    await publisher.publish("a", b"")
    assert len(await take(outbox, 1)) == 1
    assert "cannot be answered" in caplog.text


async def test_publisher_that_was_not_started_says_so(layer):
    with pytest.raises(RuntimeError, match=r"await start\(\) first"):
        await Publisher(layer).publish("a", b"")


async def test_topic_unsubscribed_leaves_the_others_of_the_client_alone(hub, publisher, take):
    outbox = Outbox()
    await hub.subscribe(outbox, {"a", "b"})
    await publisher.publish("a", b"")
    await hub.unsubscribe(outbox, {"a"})
    await publisher.publish("b", b"")
    assert ("b", 1) in seen(await take(outbox, 1) + await take(outbox, 0))


async def test_hub_that_flushes_rarely_puts_more_into_a_batch(hub, publisher, monkeypatch):
    monkeypatch.setattr("channels_hub.hub.FLUSH_SHARE", 1e-9)
    outbox = Outbox()
    await hub.subscribe(outbox, {"a"})
    batches = []
    for _ in range(2):
        for _ in range(100):
            await publisher.publish("a", b"")
        batches.append(await outbox.batch())
    assert sum(map(len, batches)) == 200


async def test_records_keep_their_order_under_load(hub, publisher, take):
    outbox = Outbox()
    await hub.subscribe(outbox, {"a", "b"})
    for number in range(2_000):
        await publisher.publish("ab"[number % 2], b"")
    sequences = seen(await take(outbox, 2_000))
    assert [number for topic, number in sequences if topic == "a"] == list(range(1, 1_001))
    assert [number for topic, number in sequences if topic == "b"] == list(range(1, 1_001))


async def test_slow_client_drops_its_own_and_nobody_elses(hub, publisher, take):
    slow, fast = Outbox(limit=10), Outbox()
    await hub.subscribe(slow, {"a"})
    await hub.subscribe(fast, {"a"})
    for _ in range(500):
        await publisher.publish("a", b"")
    assert len(await take(fast, 500)) == 500
    slow.settle()
    assert seen(slow.pending) == [("a", number) for number in range(491, 501)]
    assert slow.dropped == 490


async def test_hub_whose_layer_fails_ends_every_client(layer, caplog):
    went_away = asyncio.Event()

    async def fail(channel):
        await went_away.wait()
        raise ConnectionError("the server went away")

    layer.receive = fail
    hub = Hub(layer)
    await hub.start()
    outbox = Outbox()
    await hub.subscribe(outbox, {"a"})
    with caplog.at_level(logging.ERROR):
        went_away.set()
        with pytest.raises(Ended, match="the server went away"):
            await outbox.batch()
    assert "channel layer failed" in caplog.text
    assert hub.closed


async def test_hub_of_a_loop_is_one_until_it_is_closed():
    one, two = await asyncio.gather(Hub.current(), Hub.current())
    assert one is two
    await one.close()
    three = await Hub.current()
    assert three is not one
    await three.close()


async def test_counters_have_what_the_layer_says_it_dropped():
    hub = await Hub.current()
    assert counters()["layer_dropped"] is None
    hub.layer.dropped = 3
    assert counters()["layer_dropped"] == 3
    del hub.layer.dropped
    await hub.close()


def test_layer_is_asked_what_it_dropped_where_no_loop_runs(tmp_path):
    layer = IPCChannelLayer(directory=str(tmp_path))
    layer.dropped.count = 2
    assert dropped_by(layer) == 2
    assert dropped_by(RedisPubSubChannelLayer(hosts=[])) is None


async def test_hub_joins_again_before_the_layer_forgets(layer, publisher, take):
    layer.group_expiry = 0.2
    hub = Hub(layer)
    await hub.start()
    outbox = Outbox()
    await hub.subscribe(outbox, {"a"})
    await asyncio.sleep(0.5)
    await publisher.publish("a", b"")
    assert len(await take(outbox, 1)) == 1
    await hub.close()


async def test_message_that_no_hub_knows_is_logged_and_passed_over(
    hub, layer, publisher, take, caplog
):
    outbox = Outbox()
    await hub.subscribe(outbox, {"a"})
    await layer.send(hub.channel, {"type": "nonsense"})
    await publisher.publish("a", b"")
    assert len(await take(outbox, 1)) == 1
    assert "nonsense" in caplog.text


@pytest.fixture
async def busy_hub(layer):
    """Return a hub that takes its messages more slowly than they are published."""
    receive, hub = layer.receive, Hub(layer)

    async def receive_slowly(channel):
        if channel == hub.channel:
            for _ in range(10):
                await asyncio.sleep(0)
        return await receive(channel)

    layer.receive = receive_slowly
    layer.capacity = 40
    await hub.start()
    yield hub
    await hub.close()


async def test_publisher_waits_until_the_hub_has_taken_what_it_sent(layer, busy_hub, take):
    outbox = Outbox()
    await busy_hub.subscribe(outbox, {"a"})
    publisher = Publisher(layer, window=10)
    await publisher.start()
    for _ in range(1_000):
        await publisher.publish("a", b"")
    await publisher.close()
    assert len(await take(outbox, 1_000)) == 1_000
    assert publisher.given_up == 0


async def test_publisher_without_barriers_overruns_a_busy_hub(layer, busy_hub, take):
    outbox = Outbox()
    await busy_hub.subscribe(outbox, {"a"})
    publisher = Publisher(layer, window=0)
    for _ in range(1_000):
        await publisher.publish("a", b"")
    assert len(await take(outbox, 0)) < 1_000


async def test_publisher_whose_layer_fails_once_hears_its_hubs_again(layer, hub, caplog):
    receive, failures = layer.receive, [ConnectionError("the server went away")]
    publisher = Publisher(layer, window=1, patience_s=30)

    async def fail_once(channel):
        if failures and channel == publisher._channel:
            raise failures.pop()
        return await receive(channel)

    layer.receive = fail_once
    await publisher.start()
    for _ in range(3):
        await publisher.publish("a", b"")
    await publisher.close()
    assert set(publisher.hubs) == {hub.channel}
    assert "cannot hear its hubs" in caplog.text


async def test_publisher_gives_up_a_hub_that_is_silent(layer, hub, caplog):
    publisher = Publisher(layer, window=1, patience_s=0.3)
    await publisher.start()
    assert set(publisher.hubs) == {hub.channel}
    hub.handlers["hub.barrier"] = lambda message: asyncio.sleep(0)
    for _ in range(3):
        await publisher.publish("a", b"")
    assert publisher.given_up == 1
    assert "no longer waited for" in caplog.text
    await publisher.close()
