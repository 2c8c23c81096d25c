"""Round trips on schedule, alone and beside a busy process."""

import asyncio
import threading
from typing import Any

from bench.layers.arrivals import Arrivals, latencies
from bench.layers.part import Part
from bench.layers.roles import WARM_UP, Figures, warm_up
from bench.layers.ticks import Alarm, clock


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
    """Paced round trips beside a busy process: before it uses the layer, and while it does."""
    mine = await part.layer.new_channel()
    others = await part.ready(mine)
    there, control = others["echo"][0], others["busy"][0]
    await warm_up(part, mine, there)
    before = await Schedule(part, mine, there).run()
    await part.layer.send(control, {"type": "use.the.layer"})
    await asyncio.sleep(0.2)
    after = await Schedule(part, mine, there).run()
    p99_us = [latencies(one.times_s)["p99_us"] for one in (before, after)]
    counts = {key: value + after.counts()[key] for key, value in before.counts().items()}
    return counts | {
        "p99_before_us": p99_us[0],
        "p99_after_us": p99_us[1],
        "p99_ratio": p99_us[1] / p99_us[0],
    }


async def busy(part: Part) -> Figures:
    """Two threads that never give up the interpreter lock, and a loop that is told when to use
    the layer."""
    end = threading.Event()
    threads = [threading.Thread(target=_burn, args=(end,), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    control = await part.layer.new_channel()
    await part.ready(control)
    try:
        return await part.until_stopped(_use_when_told(part, control))
    finally:
        end.set()


def _burn(end: threading.Event) -> None:
    while not end.is_set():
        sum(range(1000))


async def _use_when_told(part: Part, control: str) -> None:
    mine, named = await part.layer.new_channel(), part.name("busy")
    await part.layer.receive(control)
    while True:
        for channel in (mine, named):
            message: dict[str, Any] = {"type": "x"}
            await part.layer.send(channel, message)
            await part.layer.receive(channel)
