"""Several processes, some of them killed or stalled."""

import asyncio
import random
from pathlib import Path
from typing import Any

from channels.exceptions import ChannelFull

from ..base import (
    LayerRules,
    MakeLayer,
    TakeProcesses,
    across_processes,
    drain,
    eventually,
    unique,
)
from ..processes import Process

MOST = 2_500  # messages that a stalled process may be sent before its sender must have been told


class Failures(LayerRules):
    """A process that dies or stalls is nobody else's trouble."""

    @across_processes
    async def test_stalled_process_gives_channel_full(
        self, make_layer: MakeLayer, take_processes: TakeProcesses
    ) -> None:
        """The sender to a stopped process gets ChannelFull, and what it accepted arrives."""
        layer = make_layer(capacity=10)
        (stalled,) = await take_processes(1, capacity=10)
        channel = await stalled.new_channel()
        await layer.send(channel, {"type": "x", "id": -1})
        assert (await stalled.receive(channel))["id"] == -1
        stalled.stall()
        accepted = await send_until_full(layer, channel)
        stalled.resume()
        assert accepted is not None, f"{MOST} messages accepted for a stopped process"
        for number in range(accepted):
            assert (await stalled.receive(channel))["id"] == number

    @across_processes
    async def test_stalled_process_delays_nobody_else(
        self, layer: Any, take_processes: TakeProcesses
    ) -> None:
        """While one member of a group is stopped, the others get their messages."""
        (stalled, well), group = await take_processes(2), unique("group")
        for one in (stalled, well):
            channel = await one.new_channel()
            await one.call("group_add", group, channel)
        stalled.stall()
        for number in range(20):
            await asyncio.wait_for(layer.group_send(group, {"type": "x", "id": number}), 2)
            assert (await well.receive(channel))["id"] == number

    @across_processes
    async def test_flush_reaches_a_stalled_process(
        self, layer: Any, take_processes: TakeProcesses
    ) -> None:
        """What was sent to a stopped process before flush() is not delivered when it goes on."""
        (stalled,) = await take_processes(1)
        channel = await stalled.new_channel()
        stalled.stall()
        await layer.send(channel, {"type": "x"})
        await asyncio.wait_for(layer.flush(), 5)
        stalled.resume()
        assert await stalled.receive(channel, 0.4) is None

    @across_processes
    async def test_killed_member_harms_no_group(
        self, layer: Any, take_processes: TakeProcesses
    ) -> None:
        """kill -9 of a member: group_send() goes on, and sends to its channel do not block."""
        (killed, well), group = await take_processes(2), unique("group")
        channels = [await one.new_channel() for one in (killed, well)]
        for one, channel in zip((killed, well), channels, strict=True):
            await one.call("group_add", group, channel)
        killed.kill()
        for number in range(10):
            await asyncio.wait_for(layer.group_send(group, {"type": "x", "id": number}), 2)
            assert (await well.receive(channels[1]))["id"] == number
        await asyncio.wait_for(send_one(layer, channels[0]), 2)

    @across_processes
    async def test_restarted_process_receives_at_once(
        self, layer: Any, take_processes: TakeProcesses
    ) -> None:
        """A consumer killed and started again under the same prefix gets what is sent next."""
        channel = unique()
        for number in range(2):
            (consumer,) = await take_processes(1)
            await consumer.consume(channel)
            await asyncio.sleep(0.2)
            await layer.send(channel, {"type": "x", "id": number})

            async def arrived(consumer: Process = consumer, number: int = number) -> bool:
                return number in await consumer.consumed()

            assert await eventually(arrived), number
            consumer.kill()

    @across_processes
    async def test_killed_consumers_double_nothing(
        self, make_layer: MakeLayer, take_processes: TakeProcesses, tmp_path: Path
    ) -> None:
        """kill -9 of consumers at any moment: no message is received twice, and those that
        live get all that is sent after the last kill."""
        layer, channel, log = make_layer(capacity=5000), unique(), tmp_path / "received"
        log.touch()
        chance, sent = random.Random(7), 0
        victims = await take_processes(4, capacity=5000)
        for last, victim in zip((1, None, 7, None), victims, strict=True):
            # The worst moment is a known one: receive() has returned, and nothing after it has run.
            await victim.consume(channel, log, last)
            await asyncio.sleep(0.1)
            sent = await send_numbered(layer, channel, sent, 40)
            if last is None:
                await asyncio.sleep(chance.random() * 0.01)
                victim.kill()
            else:
                await victim.gone()
        received = await drain(layer, channel, quiet_s=0.3)
        survivor = asyncio.create_task(drain(layer, channel, 40))
        await asyncio.sleep(0.2)
        end = await send_numbered(layer, channel, sent, 40)
        received += await survivor
        received += [int(line) for line in log.read_text().split()]
        assert len(received) == len(set(received)), "received twice"
        assert set(range(sent, end)) <= set(received)

    @across_processes
    async def test_killed_consumer_takes_nothing_along(
        self, make_layer: MakeLayer, take_processes: TakeProcesses
    ) -> None:
        """Messages queued on a named channel survive the process that read it until then."""
        layer, channel = make_layer(), unique()
        (consumer,) = await take_processes(1)
        await consumer.consume(channel)
        await asyncio.sleep(0.2)
        consumer.stall()  # what it reads from now on, it has not begun to read
        await asyncio.sleep(0.1)
        await send_numbered(layer, channel, 0, 20)
        consumer.kill()
        received = await drain(layer, channel, 20)
        assert len(received) >= 19, "more than the one message it was waiting for is lost"
        assert received == sorted(set(received))


async def send_until_full(layer: Any, channel: str) -> int | None:
    """Return how many messages went in before ChannelFull; ``None`` where it never came."""
    for number in range(MOST):
        try:
            await asyncio.wait_for(layer.send(channel, {"type": "x", "id": number}), 2)
        except ChannelFull:
            return number
    return None


async def send_one(layer: Any, channel: str) -> None:
    """Send, where the layer may say that the channel is full."""
    try:
        await layer.send(channel, {"type": "x"})
    except ChannelFull:
        return


async def send_numbered(layer: Any, channel: str, first: int, number: int) -> int:
    """Send ``number`` messages with ids from ``first`` up; return the next id."""
    for one in range(first, first + number):
        await layer.send(channel, {"type": "x", "id": one})
    return first + number
