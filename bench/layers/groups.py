"""The roles of the group measures."""

import asyncio
from time import perf_counter
from typing import Any

from bench.layers.part import Part

WINDOW = 4  # group messages under way at once
GROUP = "everybody"

Figures = dict[str, Any]


class Members:
    """Channels of this process that are in the group, each with a task that receives.

    ``acknowledge`` is awaited with a message's number when the last of them has it.
    """

    def __init__(self, part: Part, acknowledge: Any) -> None:
        self._part = part
        self._acknowledge = acknowledge
        self._missing: dict[int, int] = {}
        self.deliveries = self.duplicates = 0
        self.tasks: list[asyncio.Task[None]] = []

    async def join(self) -> None:
        layer, group = self._part.layer, self._part.name(GROUP)
        for _ in range(self._part.options["members"]):
            channel = await layer.new_channel()
            await layer.group_add(group, channel)
            self.tasks.append(asyncio.create_task(self._receive(channel)))
        await asyncio.sleep(0.2)

    async def _receive(self, channel: str) -> None:
        last = -1  # messages to a member arrive in order: one that does not is there again
        while True:
            number = (await self._part.layer.receive(channel))["id"]
            if number <= last:
                self.duplicates += 1
                continue
            last = number
            self.deliveries += 1
            left = self._missing.pop(number, len(self.tasks)) - 1
            if left:
                self._missing[number] = left
            else:
                await self._acknowledge(number)

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def figures(self) -> Figures:
        return {"deliveries": self.deliveries, "duplicates": self.duplicates}


async def group_member(part: Part) -> Figures:
    """Be some of the group, and tell the sender what has arrived everywhere here."""
    sender = asyncio.get_running_loop().create_future()

    async def acknowledge(number: int) -> None:
        await part.layer.send(await asyncio.shield(sender), {"type": "all.here", "id": number})

    members = Members(part, acknowledge)
    await members.join()
    others = await part.ready()
    sender.set_result(others["group_sender"][0])
    await part.until_stopped(asyncio.Event().wait())
    await members.leave()
    return members.figures()


async def group_sender(part: Part) -> Figures:
    """Send to the group, a few messages ahead of the slowest process."""
    mine = await part.layer.new_channel()
    await part.ready(mine)
    processes = part.options["processes"]

    async def acknowledged() -> bool:
        return await part.received(mine) is not None

    return await _send(part, acknowledged, processes, part.options["members"] * processes)


async def group_alone(part: Part) -> Figures:
    """Sender and members in one process, the only way the in-memory layer knows."""
    done: asyncio.Queue[int] = asyncio.Queue()
    members = Members(part, done.put)
    await members.join()
    await part.ready()

    async def acknowledged() -> bool:
        try:
            await asyncio.wait_for(done.get(), part.patience_s)
        except TimeoutError:
            return False
        return True

    figures = await _send(part, acknowledged, 1, len(members.tasks))
    await members.leave()
    return figures | members.figures()


async def _send(part: Part, acknowledged: Any, processes: int, members: int) -> Figures:
    """Send until the time is over; return what was sent, and how fast it was delivered."""
    group, sent, acks, start = part.name(GROUP), 0, 0, perf_counter()
    end, last_s = start + part.duration_s, start
    while True:
        while sent * processes < acks + WINDOW * processes and perf_counter() < end:
            await part.layer.group_send(group, {"type": "x", "id": sent})
            sent += 1
        if acks >= sent * processes or not await acknowledged():
            break
        acks += 1
        last_s = perf_counter()
    return {
        "sent": sent * members,
        "deliveries_per_s": acks / processes * members / (last_s - start) if acks else None,
    }
