"""The roles of the group measures."""

import asyncio
from time import perf_counter
from typing import Any

from bench.layers.acknowledgements import Acknowledgements
from bench.layers.part import Part

GROUP = "everybody"

Figures = dict[str, Any]


class Members:
    """Channels of this process that are in the group, each with a task that receives.

    A message that the last of them has is acknowledged.
    """

    def __init__(self, part: Part) -> None:
        self._part = part
        self._acknowledgements = Acknowledgements(part)
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
                self._acknowledgements.give()

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self._acknowledgements.close()

    def figures(self) -> Figures:
        return {"deliveries": self.deliveries, "duplicates": self.duplicates}


async def group_member(part: Part) -> Figures:
    """Be some of the group."""
    members = Members(part)
    await members.join()
    await part.ready()
    await part.until_stopped(asyncio.Event().wait())
    await members.leave()
    return members.figures()


async def group_sender(part: Part) -> Figures:
    """Send to members in other processes."""
    await part.ready()
    return await _send(part)


async def group_alone(part: Part) -> Figures:
    """Sender and members in one process, the only way the in-memory layer knows."""
    members = Members(part)
    await members.join()
    await part.ready()
    figures = await _send(part)
    await members.leave()
    return figures | members.figures()


async def _send(part: Part) -> Figures:
    """Send until the time is over, a few messages ahead of the slowest; return how fast it went.

    Every process acknowledges every message, so that their number is that of messages everywhere.
    """
    group, processes, window = part.name(GROUP), part.options["processes"], part.options["window"]
    members = part.options["members"] * processes
    acknowledgements = Acknowledgements(part)
    sent, come, start = 0, 0, perf_counter()
    end, last_s = start + part.duration_s, start
    while True:
        while (sent - window) * processes < come and perf_counter() < end:
            await part.layer.group_send(group, {"type": "x", "id": sent})
            sent += 1
        if come >= sent * processes or not (more := await acknowledgements.come()):
            break
        come += more
        last_s = perf_counter()
    acknowledgements.close()
    rate = come / processes * members / (last_s - start) if come else None
    return {"sent": sent * members, "deliveries_per_s": rate}
