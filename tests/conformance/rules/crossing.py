"""Several processes, all of them well."""

import asyncio
import subprocess
import sys
from ast import literal_eval
from collections.abc import Mapping
from itertools import chain
from typing import Any

import psutil

from ..base import (
    LayerRules,
    MakeLayer,
    TakeProcesses,
    across_processes,
    eventually,
    is_quiet,
    receive,
    unique,
)
from ..processes import PARTICIPANT, Process
from ..subject import Subject
from .messages import EVERY_TYPE, MEGABYTE


async def consume_together(
    layer: Any, consumers: list[Process], messages: int, outstanding: int = 32
) -> list[int]:
    """Send to a channel that all ``consumers`` read; return the ids that they received."""
    channel = unique()
    await asyncio.gather(*(one.consume(channel) for one in consumers))
    await asyncio.sleep(0.15)
    for first in range(0, messages, outstanding):
        for number in range(first, min(first + outstanding, messages)):
            await layer.send(channel, {"type": "x", "id": number})
        await asyncio.sleep(0.02)

    async def received() -> list[int]:
        return list(chain(*await asyncio.gather(*(one.consumed() for one in consumers))))

    async def all_there() -> bool:
        return set(await received()) >= set(range(messages))

    await eventually(all_there)
    await asyncio.sleep(0.3)  # a message delivered twice may come late
    return await received()


class Crossing(LayerRules):
    """What the layer is for: messages between processes."""

    @across_processes
    async def test_message_crosses_processes(
        self, layer: Any, take_processes: TakeProcesses
    ) -> None:
        """A message of every type goes to another process and the reply comes back."""
        (other,) = await take_processes(1)
        here, there = await layer.new_channel(), await other.new_channel()
        waiting = asyncio.create_task(other.receive(there))
        await layer.send(there, {**EVERY_TYPE, "reply": here})
        received = await waiting
        assert received == {**EVERY_TYPE, "reply": here}
        await other.send(received["reply"], {"type": "reply", "id": 1})
        assert (await receive(layer, here))["id"] == 1

    @across_processes
    async def test_one_megabyte_crosses_processes(
        self, layer: Any, take_processes: TakeProcesses
    ) -> None:
        """So does a message of 1 MB."""
        (other,) = await take_processes(1)
        there, message = await other.new_channel(), {"type": "big", "text": "x" * MEGABYTE}
        await layer.send(there, message)
        assert await other.receive(there) == message

    @across_processes
    async def test_order_is_kept_between_processes(
        self, make_layer: MakeLayer, take_processes: TakeProcesses
    ) -> None:
        """First in, first out from one process to another, whatever the sizes."""
        layer = make_layer(capacity=1000)
        (other,) = await take_processes(1, capacity=1000)
        there = await other.new_channel()
        await other.consume(there)
        for number in range(100):
            size = (1, 3_000, 4_100, 30_000)[number * 7 % 4]
            await layer.send(there, {"type": "x", "id": number, "text": "x" * size})

        async def all_there() -> bool:
            return len(await other.consumed()) >= 100

        await eventually(all_there)
        assert await other.consumed() == list(range(100))

    @across_processes
    async def test_two_processes_share_a_channel(
        self, make_layer: MakeLayer, take_processes: TakeProcesses
    ) -> None:
        """Two processes that read one named channel: each message to exactly one of them."""
        consumers = await take_processes(2, capacity=2000)
        received = await consume_together(make_layer(capacity=2000), consumers, 600)
        assert sorted(received) == list(range(600))

    @across_processes
    async def test_four_processes_share_a_channel(
        self, make_layer: MakeLayer, take_processes: TakeProcesses
    ) -> None:
        """The same with four."""
        consumers = await take_processes(4, capacity=2000)
        received = await consume_together(make_layer(capacity=2000), consumers, 600)
        assert sorted(received) == list(range(600))

    @across_processes
    async def test_message_outlives_its_sender(
        self, layer: Any, take_processes: TakeProcesses
    ) -> None:
        """A message to a named channel is still there after its sender has ended."""
        (sender,) = await take_processes(1)
        channel = unique()
        await layer.new_channel()
        await sender.send(channel, {"type": "x", "id": 1})
        sender.kill()
        assert (await receive(layer, channel, 1.0))["id"] == 1

    @across_processes
    async def test_group_spans_processes(self, layer: Any, take_processes: TakeProcesses) -> None:
        """A group has members in several processes; each gets each message once."""
        others, group = await take_processes(2), unique("group")
        here = await layer.new_channel()
        await layer.group_add(group, here)
        members = [await one.new_channel() for one in others]
        for one, channel in zip(others, members, strict=True):
            await one.call("group_add", group, channel)
        await others[0].call("group_send", group, {"type": "x", "id": 1})
        for one, channel in zip(others, members, strict=True):
            assert (await one.receive(channel))["id"] == 1
            assert await one.receive(channel, 0.2) is None
        assert (await receive(layer, here))["id"] == 1
        assert await is_quiet(layer, here)

    @across_processes
    async def test_full_member_keeps_nothing_from_others(
        self, make_layer: MakeLayer, take_processes: TakeProcesses
    ) -> None:
        """A group's member that is full in one process costs a member in another nothing."""
        layer, group = make_layer(capacity=3), unique("group")
        full, (other,) = await layer.new_channel(), await take_processes(1, capacity=3)
        channel = await other.new_channel()
        await layer.group_add(group, full)
        await other.call("group_add", group, channel)
        for number in range(10):
            await layer.group_send(group, {"type": "x", "id": number})
            assert (await other.receive(channel))["id"] == number

    @across_processes
    async def test_foreign_channel_can_be_added_and_discarded(
        self, layer: Any, take_processes: TakeProcesses
    ) -> None:
        """A process may add another's channel to a group, and a third may take it out."""
        (owner, third), group = await take_processes(2), unique("group")
        channel = await owner.new_channel()
        await layer.group_add(group, channel)
        await owner.call("group_add", group, channel)
        await third.call("group_send", group, {"type": "x", "id": 1})
        assert (await owner.receive(channel))["id"] == 1
        assert await owner.receive(channel, 0.2) is None, "delivered twice"
        await third.call("group_discard", group, channel)
        await layer.group_send(group, {"type": "x", "id": 2})
        assert await owner.receive(channel, 0.3) is None

    @across_processes
    async def test_flush_reaches_every_process(
        self, layer: Any, take_processes: TakeProcesses
    ) -> None:
        """flush() in one process empties channels and groups of all of them."""
        (other,) = await take_processes(1)
        channel, group = await other.new_channel(), unique("group")
        await other.call("group_add", group, channel)
        await layer.send(channel, {"type": "x"})
        await layer.flush()
        await layer.group_send(group, {"type": "x"})
        assert await other.receive(channel, 0.4) is None

    @across_processes
    async def test_both_sides_of_a_fork_are_served(
        self, subject: Subject, config: Mapping[str, Any]
    ) -> None:
        """After fork() parent and child each receive what is theirs, and only that."""
        forked = PARTICIPANT.with_name("forked.py")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(forked),
            subject.backend,
            repr(dict(config)),
            stdout=subprocess.PIPE,
            env=Process.environment(),
        )
        output, _ = await asyncio.wait_for(process.communicate(), 20)
        in_parent, in_child = literal_eval(output.decode())
        assert in_parent == [f"child {number}" for number in range(10)]
        assert in_child == [f"parent {number}" for number in range(10)]

    @across_processes
    async def test_idle_process_sleeps(self, layer: Any, take_processes: TakeProcesses) -> None:
        """A process that waits in receive() wakes fewer than twice a second."""
        (idle,) = await take_processes(1)
        waiting = asyncio.create_task(idle.receive(await idle.new_channel(), 10))
        await asyncio.sleep(0.3)
        before = wake_ups(idle.pid)
        await asyncio.sleep(0.6)
        assert wake_ups(idle.pid) - before < 0.6 * 2
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def wake_ups(pid: int) -> int:
    """Return how often the threads of ``pid`` went to sleep of their own accord so far."""
    return int(psutil.Process(pid).num_ctx_switches().voluntary)
