"""What may be sent, and that it arrives as it was."""

import asyncio
import random
from itertools import chain
from typing import Any

import pytest

from ..base import LayerRules, MakeLayer, drain, is_quiet, receive, unique

EVERY_TYPE = {
    "type": "every.type",
    "bytes": bytes(range(256)),
    "str": "\0 ascii, naïve, 日本, 🂡",
    "int64": [-(2**63), -1, 0, 1, 2**63 - 1],
    "float": [0.1, -1e308, 5e-324, float("inf")],
    "list": [[], [[b""], [""]]],
    "dict": {"": {"empty": {}}, "naïve": None},
    "bool": [True, False],
    "none": None,
}
MEGABYTE = 1_048_576  # of JSON, the size that every layer must take


class Messages(LayerRules):
    """Content, size and identity of messages."""

    async def test_every_type_survives(self, layer: Any) -> None:
        """bytes, str, int64, float, list, dict, bool and None arrive as they were sent."""
        channel = await layer.new_channel()
        await layer.send(channel, EVERY_TYPE)
        received = await receive(layer, channel)
        assert received == EVERY_TYPE
        assert [type(one) for one in received["bool"]] == [bool, bool]

    async def test_tuples_arrive_as_lists(self, layer: Any) -> None:
        """A tuple arrives as a list."""
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "x", "pair": (1, 2)})
        assert (await receive(layer, channel))["pair"] == [1, 2]

    async def test_one_megabyte_is_taken(self, layer: Any) -> None:
        """A message of 1 MB, to a channel and to a group."""
        channel, group = await layer.new_channel(), unique("group")
        message = {"type": "big", "text": "x" * MEGABYTE}
        await layer.send(channel, message)
        assert await receive(layer, channel) == message
        await layer.group_add(group, channel)
        await layer.group_send(group, message)
        assert await receive(layer, channel) == message

    async def test_what_is_not_a_dict_is_refused(self, layer: Any) -> None:
        """A message must be a dict; anything else raises, and harms no later message."""
        channel = await layer.new_channel()
        for wrong in ("text", b"bytes", ["list"], None, 7):
            with pytest.raises((TypeError, AssertionError)):
                await layer.send(channel, wrong)
        await layer.send(channel, {"type": "right"})
        assert await receive(layer, channel) == {"type": "right"}

    async def test_change_after_send_stays_with_the_sender(self, layer: Any) -> None:
        """What the sender does to its dict after send() is not received."""
        channel = await layer.new_channel()
        message = {"type": "x", "list": [1]}
        await layer.send(channel, message)
        message["list"].append(2)
        assert await receive(layer, channel) == {"type": "x", "list": [1]}

    async def test_group_members_do_not_share_a_message(self, layer: Any) -> None:
        """What one member does to its message is not seen by another."""
        group, channels = unique("group"), [await layer.new_channel() for _ in range(2)]
        for channel in channels:
            await layer.group_add(group, channel)
        await layer.group_send(group, {"type": "x", "list": [1]})
        first = await receive(layer, channels[0])
        first["list"].append("mine")
        first["mine"] = True
        assert await receive(layer, channels[1]) == {"type": "x", "list": [1]}


class Delivery(LayerRules):
    """Order, exactly one reader, and nothing lost on the way."""

    async def test_order_is_kept_on_a_process_specific_channel(self, make_layer: MakeLayer) -> None:
        """First in, first out on a process-specific channel."""
        layer = make_layer(capacity=1000)
        channel = await layer.new_channel()
        for number in range(200):
            await layer.send(channel, {"type": "x", "id": number})
        assert [(await receive(layer, channel))["id"] for _ in range(200)] == list(range(200))

    async def test_order_is_kept_for_a_single_reader(self, make_layer: MakeLayer) -> None:
        """First in, first out on a named channel with one reader and one writer."""
        layer, channel, number = make_layer(capacity=1000), unique(), 200
        reading = asyncio.create_task(take(layer, channel, number))
        await asyncio.sleep(0.1)
        for one in range(number):
            await layer.send(channel, {"type": "x", "id": one})
        assert await asyncio.wait_for(reading, 10) == list(range(number))

    async def test_order_is_kept_across_sizes(self, make_layer: MakeLayer) -> None:
        """Large messages do not fall behind small ones, nor overtake them."""
        layer = make_layer(capacity=1000)
        channel = await layer.new_channel()
        for number in range(40):
            text = "x" * random.Random(number).choice((1, 3_900, 4_100, 70_000))
            await layer.send(channel, {"type": "x", "id": number, "text": text})
        assert [(await receive(layer, channel))["id"] for _ in range(40)] == list(range(40))

    async def test_channels_do_not_mix(self, layer: Any) -> None:
        """A message comes out of the channel it was sent to, and of no other."""
        channels = [await layer.new_channel() for _ in range(5)]
        for number, channel in enumerate(channels):
            await layer.send(channel, {"type": "x", "id": number})
        for number, channel in reversed(list(enumerate(channels))):
            assert (await receive(layer, channel))["id"] == number

    async def test_one_reader_gets_each_message(self, layer: Any) -> None:
        """Readers that wait on one channel share its messages: each goes to exactly one."""
        channel = unique()
        readers = [asyncio.create_task(take(layer, channel, 10)) for _ in range(3)]
        await asyncio.sleep(0.1)
        for number in range(30):
            await layer.send(channel, {"type": "x", "id": number})
        received = await asyncio.wait_for(asyncio.gather(*readers), 10)
        assert sorted(chain(*received)) == list(range(30))

    async def test_message_waits_for_its_reader(self, layer: Any) -> None:
        """A message to a named channel that nobody reads yet is there for the first who does."""
        channel = unique()
        await layer.send(channel, {"type": "x", "id": 1})
        assert (await receive(layer, channel, 1.0))["id"] == 1
        assert await is_quiet(layer, channel)

    async def test_cancelled_receive_loses_nothing(self, make_layer: MakeLayer) -> None:
        """A storm of cancelled receive() calls loses and doubles no message."""
        layer = make_layer(capacity=1000)
        channel = await layer.new_channel()
        received = await storm(layer, channel, messages=160)
        assert sorted(received + await drain(layer, channel, 160 - len(received))) == list(
            range(160)
        )

    async def test_cancelled_receive_of_a_named_channel_loses_nothing(
        self, make_layer: MakeLayer
    ) -> None:
        """The same on a named channel."""
        layer, channel = make_layer(capacity=1000), unique()
        received = await storm(layer, channel, messages=160)
        assert sorted(received + await drain(layer, channel, 160 - len(received))) == list(
            range(160)
        )


async def take(layer: Any, channel: str, number: int) -> list[int]:
    """Return the ids of the next ``number`` messages."""
    return [(await layer.receive(channel))["id"] for _ in range(number)]


async def storm(layer: Any, channel: str, messages: int) -> list[int]:
    """Cancel a receive() at any moment of the sending of each message; return the ids received."""
    chance, received = random.Random(1), []
    for number in range(messages):
        reading = asyncio.create_task(layer.receive(channel))
        await asyncio.sleep(chance.choice((0, 0, 0.001)))
        sending = asyncio.create_task(layer.send(channel, {"type": "x", "id": number}))
        if number % 8 == 0:
            await sending
            await until_woken(reading)
        elif number % 2:
            await pass_steps(chance.randrange(60))
        else:
            await sending
            await asyncio.sleep(chance.choice((0, 0.0002, 0.0005)))
        reading.cancel()
        await sending
        result = (await asyncio.gather(reading, return_exceptions=True))[0]
        if isinstance(result, dict):
            received.append(result["id"])
        elif not isinstance(result, asyncio.CancelledError):
            raise result
    return received


async def until_woken(task: asyncio.Task[Any], timeout_s: float = 0.05) -> None:
    """Return between the moment when what ``task`` awaits is there and its next step.

    The worst moment to cancel it, and otherwise a matter of luck. Only the task itself knows what
    it awaits. The loop goes round without rest meanwhile, so the moment cannot be missed; a task
    that does not wait for anything is left alone.
    """
    end = asyncio.get_running_loop().time() + timeout_s
    while not task.done() and asyncio.get_running_loop().time() < end:
        awaited = task._fut_waiter  # type: ignore[attr-defined]
        if awaited is not None and is_done(awaited):
            return
        await asyncio.sleep(0)


def is_done(awaited: Any) -> bool:
    """Whether a future has its result; a layer's own kind of future may say so without a call."""
    return awaited.done() if callable(awaited.done) else bool(awaited.done)


async def pass_steps(number: int) -> None:
    """Let the loop go round so many times."""
    for _ in range(number):
        await asyncio.sleep(0)
