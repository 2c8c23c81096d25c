"""Round trips on schedule, alone and beside a busy process."""

import asyncio
import threading
from collections import Counter
from typing import Any

from bench.layers.arrivals import Arrivals, latencies
from bench.layers.part import Part
from bench.layers.roles import WARM_UP, Figures, warm_up
from bench.layers.ticks import Alarm, clock

# What a busy process is told.
USE, REST = "use.the.layer", "leave.the.layer"


async def paced(part: Part) -> Figures:
    """Round trips started on schedule, whatever the replies do, timed from the schedule."""
    mine = await part.layer.new_channel()
    there = (await part.ready(mine))["echo"][0]
    await warm_up(part, mine, there)
    schedule = Schedule(part, mine, there)
    arrivals = await schedule.run()
    lag = {f"lag_{key}": value for key, value in latencies(schedule.lags_s).items()}
    return arrivals.counts() | latencies(arrivals.times_s) | lag | {"warm_up": WARM_UP}


class Schedule:
    """An open loop: message ``n`` leaves at its own time, and its latency counts from there.

    ``lags_s`` is how late each left: our own share of the latency.
    """

    def __init__(self, part: Part, mine: str, there: str) -> None:
        self._part = part
        self._mine = mine
        self._there = there
        self._interval_s: float = part.options["interval_s"]
        self._total = int(part.duration_s / self._interval_s)
        self._start_s = 0.0
        self.arrivals = Arrivals()
        self.lags_s: list[float] = []

    async def run(self) -> Arrivals:
        """Send everything, and wait for what comes back."""
        self._start_s = clock() + self._interval_s
        sending = asyncio.create_task(self._send())
        while self.arrivals.received < self._total:
            received = await self._part.received(self._mine)
            if received is None:
                break
            number = received["id"]
            self.arrivals.note(number, clock() - self._intended_s(number))
        await sending
        return self.arrivals

    def _intended_s(self, number: int) -> float:
        return self._start_s + number * self._interval_s

    async def _send(self) -> None:
        alarm = Alarm()
        for number in range(self._total):
            await alarm.until(self._intended_s(number))
            message = {"type": "ping", "id": number, "reply": self._mine}
            self.lags_s.append(clock() - self._intended_s(number))
            self.arrivals.sent += 1
            await self._part.layer.send(self._there, message)
        alarm.close()


async def interfered(part: Part) -> Figures:
    """Paced round trips beside a busy process: in turns while it uses the layer, and does not.

    The turns are without, with, with, without, and so on: what drifts falls on both alike.
    """
    mine = await part.layer.new_channel()
    others = await part.ready(mine)
    there, control = others["echo"][0], others["busy"][0]
    await warm_up(part, mine, there)
    counts: Counter[str] = Counter()
    times_s: dict[str, list[float]] = {REST: [], USE: []}
    for turn in range(part.options["turns"]):
        told = USE if turn % 4 in (1, 2) else REST
        await part.layer.send(control, {"type": told})
        await asyncio.sleep(0.1)
        arrivals = await Schedule(part, mine, there).run()
        counts.update(arrivals.counts())
        times_s[told] += arrivals.times_s
    without, beside = (latencies(times_s[told])["p99_us"] for told in (REST, USE))
    return {
        **counts,
        "p99_without_us": without,
        "p99_beside_us": beside,
        "p99_ratio": beside / without,
    }


async def busy(part: Part) -> Figures:
    """Two threads that never give up the interpreter lock, and a loop that uses the layer when it
    is told to."""
    end = threading.Event()
    threads = [threading.Thread(target=_burn, args=(end,), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    control = await part.layer.new_channel()
    await part.ready(control)
    try:
        using = asyncio.Event()
        both = asyncio.gather(_listen(part, control, using), _use(part, using))
        return await part.until_stopped(both)
    finally:
        end.set()


def _burn(end: threading.Event) -> None:
    while not end.is_set():
        sum(range(1000))


async def _listen(part: Part, control: str, using: asyncio.Event) -> None:
    while True:
        told = await part.layer.receive(control)
        (using.set if told["type"] == USE else using.clear)()


async def _use(part: Part, using: asyncio.Event) -> None:
    mine, named = await part.layer.new_channel(), part.name("busy")
    while True:
        await using.wait()
        for channel in (mine, named):
            message: dict[str, Any] = {"type": "x"}
            await part.layer.send(channel, message)
            await part.layer.receive(channel)
        await asyncio.sleep(0)  # a layer that never suspends leaves no turn to who listens
