"""The layer's promises, with two layer objects as two ends: each has a mailbox of its own."""

import asyncio
import contextlib
import contextvars
import os
import time

import pytest
from channels.exceptions import ChannelFull, MessageTooLarge
from django.core.exceptions import ImproperlyConfigured

from channels_ipc import IPCChannelLayer, pipes, wire
from channels_ipc.groups import Memberships
from channels_ipc.messages import pack

SIZES = [10, 3_000, 5_000, 1_000_000, 5_000_000]
MAILBOX = 65_536 // 60  # the most of the small messages here that a mailbox holds


@pytest.fixture(params=["own", "other", "named", "parked"])
async def ends(request, make_layer):
    """A sender, a receiver and a channel: in one process, in two, and named.

    ``parked`` is a named channel that nobody receives from before the first message is sent.
    """
    receiver = make_layer(capacity=10)
    sender = receiver if request.param == "own" else make_layer(capacity=10)
    if request.param in ("own", "other"):
        channel = await receiver.new_channel()
    else:
        channel = "named"
    if request.param == "named":
        await nothing(receiver, channel)
    return sender, receiver, channel


async def nothing(layer, channel):
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(layer.receive(channel), 0.05)


async def receive(layer, channel, count=1):
    return [(await asyncio.wait_for(layer.receive(channel), 5))["n"] for _ in range(count)]


async def test_messages_of_any_size_keep_their_order(ends):
    sender, receiver, channel = ends
    for n, size in enumerate(SIZES):
        await sender.send(channel, {"type": "t", "n": n, "body": b"x" * size})
    for n, size in enumerate(SIZES):
        message = await asyncio.wait_for(receiver.receive(channel), 5)
        assert (message["n"], len(message["body"])) == (n, size)


async def test_message_wakes_a_waiting_receiver(ends):
    sender, receiver, channel = ends
    for n in range(5):
        task = asyncio.create_task(receiver.receive(channel))
        await asyncio.sleep(0.01)
        await sender.send(channel, {"type": "t", "n": n})
        assert (await asyncio.wait_for(task, 5))["n"] == n


async def test_changing_a_message_after_sending_changes_nothing(ends):
    sender, receiver, channel = ends
    message = {"type": "t", "n": [1]}
    await sender.send(channel, message)
    message["n"].append(2)
    assert await receive(receiver, channel) == [[1]]


async def test_expired_message_is_never_received(ends):
    sender, receiver, channel = ends
    sender.expiry = 0.05
    await sender.send(channel, {"type": "t", "n": 1})
    sender.expiry = 60
    await sender.send(channel, {"type": "t", "n": 2})
    await asyncio.sleep(0.1)
    assert await receive(receiver, channel) == [2]


async def test_expired_messages_make_room(ends):
    sender, receiver, channel = ends
    sender.expiry = 0.3
    with pytest.raises(ChannelFull):
        for n in range(100_000):
            await sender.send(channel, {"type": "t", "n": n})
            if n % 10 == 9:
                await asyncio.sleep(0)
    await asyncio.sleep(0.4)
    sender.expiry = 60
    await sender.send(channel, {"type": "t", "n": "late"})
    assert await receive(receiver, channel) == ["late"]


async def accepted_of(sender, channel, count):
    """Return how many of ``count`` messages are accepted, with a turn for the owner after each."""
    accepted = 0
    for n in range(count):
        with contextlib.suppress(ChannelFull):
            await sender.send(channel, {"type": "t", "n": n})
            accepted += 1
        await asyncio.sleep(0)
    return accepted


async def test_stuck_channel_whose_messages_expire_stays_bounded(make_layer):
    layer, sender = make_layer(capacity=10), make_layer(capacity=10, expiry=0.1)
    channel = await layer.new_channel()
    await accepted_of(sender, channel, 100)
    await asyncio.sleep(0.2)
    sender.expiry = 60
    assert 10 <= await accepted_of(sender, channel, 10_000) <= 10 + MAILBOX
    assert len(layer._endpoint._inbox.queues[channel].items) <= 10 + MAILBOX


@pytest.mark.parametrize("expiring", [range(1), range(1, 30)], ids=["the oldest", "all others"])
async def test_room_comes_when_enough_has_expired_and_not_before(make_layer, expiring):
    layer, sender = make_layer(capacity=10), make_layer(capacity=10)
    channel = await layer.new_channel()
    for n in range(30):  # all before the owner can say that it is full
        sender.expiry = 0.1 if n in expiring else 60
        await sender.send(channel, {"type": "t", "n": n})
    await asyncio.sleep(0.2)
    sender.expiry = 60
    assert await accepted_of(sender, channel, 100) == 0
    lasting = [n for n in range(30) if n not in expiring]
    assert await receive(layer, channel, len(lasting)) == lasting
    assert 10 <= await accepted_of(sender, channel, 100) < 20


async def test_sender_that_makes_room_as_a_receiver_comes_changes_no_order(make_layer, monkeypatch):
    layer, sender = make_layer(capacity=4), make_layer(capacity=4)
    await nothing(layer, "named")
    sender.expiry = 0.05
    await sender.send("named", {"type": "t", "n": "expired"})
    sender.expiry = 60
    for n in range(3):
        await sender.send("named", {"type": "t", "n": n})
    await asyncio.sleep(0.1)
    peek = pipes.peek

    def peek_too_early(fd, size):
        head = peek(fd, size)
        os.read(fd, size)  # as a receiver does in another process
        monkeypatch.undo()
        return head

    monkeypatch.setattr(pipes, "peek", peek_too_early)
    await sender.send("named", {"type": "t", "n": 3})
    assert pipes.peek is peek
    assert await receive(layer, "named", 4) == [0, 1, 2, 3]


async def test_only_one_sender_at_a_time_makes_room(make_layer):
    layer, sender = make_layer(capacity=1), make_layer(capacity=1)
    await nothing(layer, "named")
    sender.expiry = 0.05
    await sender.send("named", {"type": "t", "n": "expired"})
    await asyncio.sleep(0.1)
    fd = os.open(f"{layer._endpoint.directory.path}/q/named", os.O_RDWR | os.O_NONBLOCK)
    assert pipes.lock(fd, shared=False)
    with pytest.raises(ChannelFull):
        await sender.send("named", {"type": "t", "n": 1})
    await nothing(layer, "named")  # who makes room may be stopped: a receiver waits only a moment
    os.close(fd)
    await sender.send("named", {"type": "t", "n": 2})
    assert await receive(layer, "named") == [2]


@pytest.mark.parametrize("kind", ["other", "named", "parked"])
async def test_big_messages_that_wait_are_bounded_in_bytes(make_layer, kind):
    settings = {"capacity": 100, "message_limit": 10_000}
    layer, sender = make_layer(**settings), make_layer(**settings)
    channel = await layer.new_channel() if kind == "other" else "named"
    if kind == "named":
        await nothing(layer, channel)
    big = {"type": "t", "n": 1, "body": b"x" * 9000}
    for _ in range(4):
        await sender.send(channel, big)
    with pytest.raises(ChannelFull):
        await sender.send(channel, big)
    await sender.send(channel, {"type": "t", "n": 2})
    assert await receive(layer, channel, 5) == [1, 1, 1, 1, 2]
    await sender.send(channel, big)
    assert await receive(layer, channel) == [1]


async def test_flush_removes_what_was_sent_and_nothing_later(ends):
    sender, receiver, channel = ends
    for n in range(5):
        await sender.send(channel, {"type": "t", "n": n, "body": b"x" * 2000 * n})
    await sender.flush()
    await sender.send(channel, {"type": "t", "n": "later"})
    assert await receive(receiver, channel) == ["later"]
    await nothing(receiver, channel)


async def test_cancelled_receivers_lose_nothing(ends):
    sender, receiver, channel = ends
    received = []

    async def take():
        received.append((await receiver.receive(channel))["n"])

    for n in range(300):
        tasks = [asyncio.create_task(take()) for _ in range(3)]
        await asyncio.sleep(0)
        await sender.send(channel, {"type": "t", "n": n})
        if n % 2:
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while len(received) < n + 1:
            received += await receive(receiver, channel)
    assert received == list(range(300))


async def test_receiver_that_takes_its_time_finds_the_message_in_its_place(make_layer):
    sender, receiver = make_layer(), make_layer()
    channel = await receiver.new_channel()
    # Somebody who drives a coroutine without asyncio's tasks, and later than we resume it.
    waiter = receiver._endpoint.way(channel).wait(asyncio.get_running_loop())
    waiter.add_done_callback(lambda _: None, context=contextvars.copy_context())
    await sender.send(channel, {"type": "t", "n": 1})
    await asyncio.sleep(0.05)
    await sender.send(channel, {"type": "t", "n": 2})
    assert waiter.done
    assert await receive(receiver, channel, 2) == [1, 2]


async def test_waiting_receivers_each_get_one_message(ends):
    sender, receiver, channel = ends
    tasks = [asyncio.create_task(receiver.receive(channel)) for _ in range(10)]
    await asyncio.sleep(0.01)
    for n in range(10):
        await sender.send(channel, {"type": "t", "n": n})
    messages = await asyncio.wait_for(asyncio.gather(*tasks), 5)
    assert sorted(message["n"] for message in messages) == list(range(10))


@pytest.mark.parametrize("sender", ["own", "named"])
async def test_capacity_is_exact(make_layer, sender):
    layer = make_layer(capacity=7, channel_capacity={"wide.*": 9, "named-wide*": 9})
    channels = {
        "own": [(await layer.new_channel(), 7), (await layer.new_channel("wide"), 9)],
        "named": [("named", 7), ("named-wide", 9)],
    }
    for channel, capacity in channels[sender]:
        for n in range(capacity):
            await layer.send(channel, {"type": "t", "n": n})
        with pytest.raises(ChannelFull):
            await layer.send(channel, {"type": "t"})
        assert await receive(layer, channel, capacity) == list(range(capacity))
        await layer.send(channel, {"type": "t", "n": "again"})


async def test_named_channel_is_full_at_its_capacity_with_a_receiver(make_layer):
    layer, other = make_layer(capacity=7), make_layer(capacity=7)
    await nothing(layer, "named")
    for n in range(7):
        await other.send("named", {"type": "t", "n": n})
    with pytest.raises(ChannelFull):
        await other.send("named", {"type": "t"})
    assert await receive(layer, "named", 7) == list(range(7))


async def test_stuck_channel_blocks_no_other_of_its_process(make_layer):
    layer, sender = make_layer(capacity=5), make_layer(capacity=5)
    stuck, healthy = await layer.new_channel(), await layer.new_channel()
    task = asyncio.create_task(layer.receive(healthy))
    accepted = 0
    with pytest.raises(ChannelFull):
        for _ in range(100_000):
            await sender.send(stuck, {"type": "t", "n": accepted})
            accepted += 1
            await asyncio.sleep(0)
    await sender.send(healthy, {"type": "t", "n": "through"})
    assert (await asyncio.wait_for(task, 5))["n"] == "through"
    assert await receive(layer, stuck, accepted) == list(range(accepted))
    await sender.send(stuck, {"type": "t", "n": "again"})
    assert await receive(layer, stuck) == ["again"]


async def test_messages_of_two_senders_arrive_in_the_order_of_sending(make_layer):
    layer, other = make_layer(), make_layer()
    channel = await layer.new_channel()
    for n in range(50):
        await (layer if n % 2 else other).send(channel, {"type": "t", "n": n})
    assert await receive(layer, channel, 50) == list(range(50))


async def test_too_large_message_is_refused_by_name(make_layer):
    layer = make_layer(message_limit=1000)
    for call in (layer.send, layer.group_send):
        with pytest.raises(layer.MessageTooLarge, match="message_limit is 1000"):
            await call("named", {"type": "t", "body": b"x" * 1000})
    assert layer.MessageTooLarge is MessageTooLarge
    assert layer.ChannelFull is ChannelFull


@pytest.mark.parametrize("name", ["", "with space", "x" * 100, 7, "a/b", "..\n/"])
async def test_invalid_names_are_refused(make_layer, name):
    layer = make_layer()
    with pytest.raises(TypeError):
        await layer.send(name, {"type": "t"})
    with pytest.raises(TypeError):
        await layer.receive(name)
    with pytest.raises(TypeError):
        await layer.group_send(name, {"type": "t"})
    for call in (layer.group_add, layer.group_discard):
        for group, channel in ((name, "named"), ("room", name)):
            with pytest.raises(TypeError):
                await call(group, channel)


async def test_new_channel_begins_with_the_prefix_it_was_asked_for(make_layer):
    layer, other = make_layer(), make_layer()
    names = [await layer.new_channel("chat") for _ in range(2)]
    assert all(name.startswith("chat.") for name in names)
    for n, name in enumerate(names):
        await other.send(name, {"type": "t", "n": n})
    assert [await receive(layer, name) for name in names] == [[0], [1]]


@pytest.mark.parametrize("name", [".", "..", ".new", "Case", "case", "x!y", "-"])
async def test_awkward_names_are_channels_of_their_own(make_layer, name):
    layer, other = make_layer(), make_layer()
    await other.send(name, {"type": "t", "n": name})
    await other.send("other", {"type": "t", "n": "other"})
    assert await receive(layer, name) == [name]
    await nothing(layer, name)


async def test_message_that_is_no_dict_is_refused(make_layer):
    with pytest.raises(TypeError, match="dict"):
        await make_layer().send("named", ["type"])


async def test_unserializable_message_is_refused_at_once(make_layer):
    with pytest.raises(TypeError):
        await make_layer().send("named", {"type": object()})


async def test_foreign_channel_cannot_be_received_from(make_layer):
    layer, other = make_layer(), make_layer()
    with pytest.raises(ValueError, match="belongs to another process"):
        await layer.receive(await other.new_channel())


def test_unknown_setting_names_the_nearest():
    with pytest.raises(ImproperlyConfigured, match="'capcity': did you mean 'capacity'"):
        IPCChannelLayer(capcity=5)


@pytest.mark.parametrize(
    "settings",
    [
        {"capacity": 0},
        {"expiry": 0},
        {"expiry": float("inf")},
        {"group_expiry": -1},
        {"group_expiry": float("nan")},
        {"prefix": ""},
        {"message_limit": 0},
    ],
)
def test_impossible_setting_is_refused(settings):
    with pytest.raises(ImproperlyConfigured, match=next(iter(settings))):
        IPCChannelLayer(**settings)


# Groups.


@pytest.fixture
async def members(make_layer):
    """Two layers, and in each two members of the group ``room``, and a named one."""
    first, second = make_layer(capacity=3), make_layer(capacity=3)
    channels = [(first, await first.new_channel()) for _ in range(2)]
    channels += [(second, await second.new_channel()) for _ in range(2)]
    channels += [(second, "named")]
    for layer, channel in channels:
        await layer.group_add("room", channel)
    return channels


async def test_group_message_reaches_every_member_once(members, make_layer):
    for layer in (members[0][0], members[-1][0], make_layer()):
        await layer.group_send("room", {"type": "t", "n": [1]})
        for member, channel in members:
            assert await receive(member, channel) == [[1]]
    for member, channel in members:
        await nothing(member, channel)


async def test_group_members_do_not_share_a_message(members):
    await members[0][0].group_send("room", {"type": "t", "n": [1]})
    for layer, channel in members:
        message = await layer.receive(channel)
        assert message["n"] == [1]
        message["n"].append(2)


async def test_large_group_message_reaches_every_member(members):
    await members[0][0].group_send("room", {"type": "t", "n": "x" * 2_000_000})
    for layer, channel in members:
        assert await receive(layer, channel) == ["x" * 2_000_000]


async def test_foreign_member_is_added_and_discarded_without_doubling(members, make_layer):
    stranger = make_layer()
    for _, channel in members:
        await stranger.group_add("room", channel)
    await stranger.group_send("room", {"type": "t", "n": 1})
    await members[0][0].group_send("room", {"type": "t", "n": 2})
    for layer, channel in members:
        assert await receive(layer, channel, 2) == [1, 2]
        await nothing(layer, channel)
        await stranger.group_discard("room", channel)
    await members[0][0].group_send("room", {"type": "t", "n": 3})
    for layer, channel in members:
        await nothing(layer, channel)


async def test_foreign_member_only(make_layer):
    owner, stranger = make_layer(), make_layer()
    channel = await owner.new_channel()
    await stranger.group_add("room", channel)
    for n, layer in enumerate((owner, stranger)):
        await layer.group_send("room", {"type": "t", "n": n})
        assert await receive(owner, channel) == [n]
    await owner.group_discard("room", channel)
    await stranger.group_send("room", {"type": "t", "n": 2})
    await nothing(owner, channel)


async def test_discarding_who_is_no_member_does_nothing(make_layer):
    layer = make_layer()
    for channel in (await layer.new_channel(), "named", "specific.0123456789abcdef!1"):
        await layer.group_discard("room", channel)


async def test_full_member_is_dropped_counted_and_logged(members, caplog):
    layer, other = members[0][0], members[-1][0]
    for n in range(5):
        await layer.group_send("room", {"type": "t", "n": n})
        await asyncio.sleep(0.01)
    # Two of five messages for each member: the owner counts, for the named channel the sender.
    assert (layer.dropped.count, other.dropped.count) == (2 * 2 + 2, 2 * 2)
    assert "dropped a group's message" in caplog.text
    for member, channel in members[:2]:
        assert await receive(member, channel, 3) == [0, 1, 2]


@pytest.mark.parametrize("own", [True, False])
async def test_membership_ends_at_group_expiry(make_layer, own):
    owner = make_layer(group_expiry=0.2)
    adder = owner if own else make_layer(group_expiry=0.2)
    channel = await owner.new_channel()
    await adder.group_add("room", channel)
    await adder.group_send("room", {"type": "t", "n": 1})
    await asyncio.sleep(0.25)
    await adder.group_send("room", {"type": "t", "n": 2})
    assert await receive(owner, channel) == [1]
    await nothing(owner, channel)
    await adder.group_add("room", channel)
    await adder.group_send("room", {"type": "t", "n": 3})
    assert await receive(owner, channel) == [3]


@pytest.mark.parametrize("kind", ["own", "foreign", "named"])
async def test_membership_ends_when_a_message_expires_unread(make_layer, kind):
    owner = make_layer(expiry=0.1)
    adder = make_layer(expiry=0.1) if kind == "foreign" else owner
    channel = "named" if kind == "named" else await owner.new_channel()
    await adder.group_add("room", channel)
    await owner.group_send("room", {"type": "t", "n": 1})
    await asyncio.sleep(0.15)
    await nothing(owner, channel)
    await owner.group_send("room", {"type": "t", "n": 2})
    await nothing(owner, channel)


async def test_flush_ends_every_membership(members):
    await members[-1][0].flush()
    await members[0][0].group_send("room", {"type": "t", "n": 1})
    for layer, channel in members:
        await nothing(layer, channel)
    await members[0][0].group_add("room", members[0][1])
    await members[-1][0].group_send("room", {"type": "t", "n": 2})
    assert await receive(*members[0]) == [2]


# Faults and leftovers.


async def test_rubbish_in_a_mailbox_is_counted_logged_once_and_skipped(make_layer, caplog):
    import random

    rng = random.Random(3)
    layer, sender = make_layer(), make_layer()
    channel = await layer.new_channel()
    path = f"{layer._endpoint.directory.path}/n/{channel[9:25]}/mailbox"
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    for n in range(10_000):
        os.write(fd, rng.randbytes(rng.randrange(1, 60)))
        if n % 100 == 0:
            await sender.send(channel, {"type": "t", "n": n})
            assert await receive(layer, channel) == [n]
    os.close(fd)
    assert layer.malformed.count > 90
    assert caplog.text.count("skipped what is no message") == 1


async def test_rubbish_in_a_named_channel_is_skipped(make_layer):
    layer, sender = make_layer(), make_layer()
    await nothing(layer, "named")
    fd = os.open(f"{layer._endpoint.directory.path}/q/named", os.O_WRONLY | os.O_NONBLOCK)
    for n, size in enumerate((1, 100, 1023, 1024, 1025, 3000)):
        os.write(fd, b"r" * size)
        await sender.send("named", {"type": "t", "n": n})
        assert await receive(layer, "named") == [n]
    os.close(fd)
    assert layer.malformed.count > 0


async def test_payload_that_is_no_message_is_skipped(ends, monkeypatch):
    sender, receiver, channel = ends
    await sender.send(channel, {"type": "t", "n": 1})
    monkeypatch.setattr("channels_ipc.layer.pack", lambda message: b"\xc1")
    await sender.send(channel, {"type": "t"})
    monkeypatch.undo()
    await sender.send(channel, {"type": "t", "n": 2})
    assert await receive(receiver, channel, 2) == [1, 2]
    assert receiver.malformed.count == 1


async def test_message_parked_while_a_receiver_comes_is_found(make_layer):
    layer, sender = make_layer(), make_layer()
    task = asyncio.create_task(layer.receive("named"))
    await asyncio.sleep(0.01)
    parker = sender._endpoint or sender._start()
    data = wire.encode(
        wire.MESSAGE,
        parker.directory.generation[0],
        time.monotonic() + 60,
        b"named",
        pack({"n": 1}),
    )
    assert parker.way("named")._park(data, time.monotonic() + 60)
    assert (await asyncio.wait_for(task, 5))["n"] == 1


async def test_nothing_is_left_open_or_lying_about_after_close(make_layer, directory):
    open_before = len(os.listdir("/proc/self/fd"))
    layer, other = make_layer(), make_layer()
    channel = await layer.new_channel()
    await other.new_channel()
    for n, size in enumerate((1, 2_000, 10_000)):
        for name in (channel, "named"):
            await other.send(name, {"type": "t", "n": n, "body": b"x" * size})
            assert await receive(layer, name) == [n]
    await layer.close()
    await other.send(channel, {"type": "t"})
    await other.close()
    await asyncio.sleep(0)
    assert len(os.listdir("/proc/self/fd")) == open_before
    left = [os.path.join(at, file) for at, _, files in os.walk(directory) for file in files]
    assert sorted(map(os.path.basename, left)) == ["meta", "named"]
    assert os.listdir(f"{directory}/asgi/n") == []


async def test_layer_can_be_used_again_after_close(make_layer):
    layer = make_layer()
    for _ in range(3):
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "t", "n": 1})
        assert await receive(layer, channel) == [1]
        await layer.close()


async def test_many_named_channels_keep_within_the_bound_of_descriptors(make_layer):
    layer, other = make_layer(), make_layer()
    before = len(os.listdir("/proc/self/fd"))
    for n in range(400):
        await nothing_waits(layer, f"channel-{n}")
        await other.send(f"channel-{n}", {"type": "t", "n": n})
    # The receiver keeps two for each of its 128, the sender one.
    assert len(os.listdir("/proc/self/fd")) - before <= 3 * 128 + 10
    for n in range(400):
        assert await receive(layer, f"channel-{n}") == [n]


async def nothing_waits(layer, channel):
    task = asyncio.create_task(layer.receive(channel))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_abandoned_channels_are_forgotten(make_layer, monkeypatch):
    monkeypatch.setattr("channels_ipc.inbox.SWEEP_S", 0.0)
    layer = make_layer(expiry=0.02)
    for _ in range(50):
        await layer.send(await layer.new_channel(), {"type": "t"})
    await asyncio.sleep(0.05)
    await layer.send(await layer.new_channel(), {"type": "t"})
    assert len(layer._endpoint._inbox.queues) <= 1


@pytest.mark.parametrize(("kind", "groups"), [("own", 10_000), ("named", 1_000)])
async def test_ended_memberships_of_groups_that_nobody_sends_to_are_forgotten(
    make_layer, kind, groups
):
    layer = make_layer(group_expiry=0.05)
    own = await layer.new_channel()
    await layer.send(own, {"type": "t", "n": 1})  # the next sweep is in ten seconds
    endpoint = layer._endpoint
    for n in range(groups):
        await layer.group_add(f"group-{n}", own if kind == "own" else "named")
    for n in range(groups):
        endpoint._markers.members(f"group-{n}")
    await asyncio.sleep(0.1)
    endpoint._inbox.sweep_at = endpoint._markers._sweep_at = 0.0
    await layer.send(own, {"type": "t", "n": 2})
    await layer.group_send("another", {"type": "t"})
    assert vars(endpoint._inbox.memberships) == vars(Memberships())
    assert not any(endpoint._inbox.mailbox.status.groups)
    assert endpoint._markers._listings == endpoint._markers._members == {}


async def test_lasting_memberships_are_kept_by_a_sweep(members):
    for n in range(2):
        for layer, _ in members:
            layer._endpoint._inbox.sweep_at = layer._endpoint._markers._sweep_at = 0.0
        await members[0][0].group_send("room", {"type": "t", "n": n})
        for layer, channel in members:
            assert await receive(layer, channel) == [n]


async def test_endless_supply_leaves_other_tasks_their_turn(make_layer, turns):
    layer = make_layer(capacity=1000)
    channel = await layer.new_channel()
    async with turns() as had:
        for n in range(1000):
            await layer.send(channel, {"type": "t", "n": n})
        await receive_directly(layer, channel, 1000)
    assert len(had) >= 10


async def receive_directly(layer, channel, count):
    for _ in range(count):
        await layer.receive(channel)


@pytest.mark.timing
async def test_idle_receivers_use_no_cpu(make_layer):
    layer = make_layer()
    tasks = [asyncio.create_task(layer.receive(await layer.new_channel())) for _ in range(20)]
    tasks.append(asyncio.create_task(layer.receive("named")))
    await asyncio.sleep(0.05)
    before = time.process_time()
    await asyncio.sleep(0.5)
    assert time.process_time() - before < 0.02
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
