"""Backpressure and expiry."""

import asyncio
from typing import Any

import pytest
from channels.exceptions import ChannelFull

from ..base import LayerRules, MakeLayer, drain, is_quiet, receive, unique
from ..subject import Subject


async def fill(layer: Any, channel: str, number: int) -> None:
    for one in range(number):
        await layer.send(channel, {"type": "x", "id": one})


class Capacity(LayerRules):
    """send() never blocks: it raises ChannelFull."""

    async def test_full_process_specific_channel_raises(self, make_layer: MakeLayer) -> None:
        """send() to a process-specific channel at its capacity raises ChannelFull, at once."""
        layer = make_layer(capacity=3)
        channel = await layer.new_channel()
        await fill(layer, channel, 3)
        with pytest.raises(ChannelFull):
            await asyncio.wait_for(layer.send(channel, {"type": "x"}), 2)

    async def test_full_named_channel_raises(self, make_layer: MakeLayer) -> None:
        """send() to a named channel at its capacity raises ChannelFull, at once."""
        layer, channel = make_layer(capacity=3), unique()
        await fill(layer, channel, 3)
        with pytest.raises(ChannelFull):
            await asyncio.wait_for(layer.send(channel, {"type": "x"}), 2)

    async def test_receive_makes_room(self, make_layer: MakeLayer) -> None:
        """A channel that was full takes one more for each that is received, and loses none."""
        layer = make_layer(capacity=3)
        channel = await layer.new_channel()
        await fill(layer, channel, 3)
        assert (await receive(layer, channel))["id"] == 0
        await layer.send(channel, {"type": "x", "id": 3})
        assert await drain(layer, channel, 3) == [1, 2, 3]

    async def test_channel_capacity_matches_patterns(self, make_layer: MakeLayer) -> None:
        """channel_capacity sets the capacity of the channels whose names match a pattern."""
        low, high = unique("low"), unique("high")
        layer = make_layer(capacity=5, channel_capacity={"low.*": 1})
        await fill(layer, low, 1)
        await fill(layer, high, 5)
        with pytest.raises(ChannelFull):
            await layer.send(low, {"type": "x"})

    async def test_full_channel_leaves_others_alone(self, make_layer: MakeLayer) -> None:
        """A full named channel does not keep messages from another."""
        layer, full, other = make_layer(capacity=3), unique(), unique()
        reading = asyncio.create_task(receive(layer, other))
        await asyncio.sleep(0.1)
        await fill(layer, full, 3)
        await layer.send(other, {"type": "x", "id": 7})
        assert (await reading)["id"] == 7

    async def test_capacity_is_shared_over_the_prefix(self, make_layer: MakeLayer) -> None:
        """The channels of one process share the capacity of the name up to the "!"."""
        layer = make_layer(capacity=3)
        first, second = await layer.new_channel(), await layer.new_channel()
        await fill(layer, first, 3)
        with pytest.raises(ChannelFull):
            await layer.send(second, {"type": "x"})

    async def test_accepted_messages_are_not_dropped(self, make_layer: MakeLayer) -> None:
        """What send() accepted for a slow consumer is received, while its neighbour is busy."""
        layer = make_layer(capacity=5)
        slow, busy = await layer.new_channel(), await layer.new_channel()
        neighbour = asyncio.create_task(layer.receive(busy))
        accepted = []
        for number in range(20):
            try:
                await layer.send(slow, {"type": "x", "id": number})
            except ChannelFull:
                continue
            accepted.append(number)
            await asyncio.sleep(0.02)
        neighbour.cancel()
        await asyncio.gather(neighbour, return_exceptions=True)
        assert await drain(layer, slow, len(accepted)) == accepted

    async def test_group_send_never_raises_channel_full(self, make_layer: MakeLayer) -> None:
        """group_send() to a full member raises nothing, and what the member had stays in order."""
        layer, group = make_layer(capacity=3), unique("group")
        full = await layer.new_channel()
        await layer.group_add(group, full)
        await fill(layer, full, 3)
        await layer.group_send(group, {"type": "x", "id": 9})
        assert [(await receive(layer, full))["id"] for _ in range(3)] == [0, 1, 2]
        await layer.group_send(group, {"type": "x", "id": 10})
        received = (await receive(layer, full))["id"]
        if received == 9:  # a layer without a capacity kept it
            received = (await receive(layer, full))["id"]
        assert received == 10


class Expiry(LayerRules):
    """Messages that nobody read end."""

    async def test_unread_message_expires(self, make_layer: MakeLayer, subject: Subject) -> None:
        """A message that sat unread for expiry seconds is not delivered."""
        layer = make_layer(expiry=subject.shortest_expiry_s)
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "x", "id": 1})
        await asyncio.sleep(1.2 * subject.shortest_expiry_s)
        assert await is_quiet(layer, channel)

    async def test_expiry_is_of_each_message(self, make_layer: MakeLayer, subject: Subject) -> None:
        """A message that expired is not delivered because a later one is still fresh."""
        layer = make_layer(expiry=subject.shortest_expiry_s)
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "x", "id": 1})
        await asyncio.sleep(0.8 * subject.shortest_expiry_s)
        await layer.send(channel, {"type": "x", "id": 2})
        await asyncio.sleep(0.4 * subject.shortest_expiry_s)
        assert await drain(layer, channel, 1) == [2]

    async def test_expiry_below_a_second_works(self, make_layer: MakeLayer) -> None:
        """An expiry that is a fraction of a second delivers before it and not after."""
        layer = make_layer(expiry=0.4)
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "x", "id": 1})
        assert (await receive(layer, channel, 1))["id"] == 1
        await layer.send(channel, {"type": "x", "id": 2})
        await asyncio.sleep(0.5)
        assert await is_quiet(layer, channel)

    async def test_expired_messages_make_room(
        self, make_layer: MakeLayer, subject: Subject
    ) -> None:
        """A channel full of expired messages takes new ones."""
        layer, channel = make_layer(capacity=3, expiry=subject.shortest_expiry_s), unique()
        await fill(layer, channel, 3)
        await asyncio.sleep(1.3 * subject.shortest_expiry_s)
        await layer.send(channel, {"type": "x", "id": 9})
        assert await drain(layer, channel, 1) == [9]
