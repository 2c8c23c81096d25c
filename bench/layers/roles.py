"""What each process of a measure does. All of them get a ``Part`` and return their figures.

A role says what others must know of it (``part.ready``), is told what the others said
(``part.others``), works, and returns. One that serves others does so until ``part.stopped``.
"""

import asyncio
import os
import threading
from time import perf_counter, sleep
from typing import Any

from channels.exceptions import ChannelFull

from bench.layers.arrivals import Arrivals, latencies
from bench.layers.part import Part
from bench.layers.processor import cpu_s
from bench.layers.ticks import clock, ticking

Figures = dict[str, Any]

WARM_UP = 30  # round trips
FULL_S = 0.0002  # how long a sender waits that found the channel full


async def echo(part: Part) -> Figures:
    """Send each message back to where it says."""
    channel = await part.layer.new_channel()
    await part.ready(channel)
    return await part.until_stopped(_answer(part.layer, channel))


async def _answer(layer: Any, channel: str) -> None:
    while True:
        message = await layer.receive(channel)
        await layer.send(message["reply"], message)


async def ping(part: Part) -> Figures:
    """Round trips, one after the other."""
    mine = await part.layer.new_channel()
    there = (await part.ready(mine))["echo"][0]
    await _warm_up(part, mine, there)
    arrivals, end = Arrivals(), perf_counter() + part.duration_s
    while (start := perf_counter()) < end:
        message = {"type": "ping", "id": arrivals.sent, "reply": mine}
        arrivals.sent += 1
        await part.layer.send(there, message)
        received = await part.received(mine)
        if received is None:
            break
        arrivals.note(received["id"], perf_counter() - start)
    return arrivals.counts() | latencies(arrivals.times_s)


async def _warm_up(part: Part, mine: str, there: str) -> None:
    """Have both sides open what they open once."""
    for _ in range(WARM_UP):
        await part.layer.send(there, {"type": "warm.up", "reply": mine})
        await part.received(mine)


async def paced(part: Part) -> Figures:
    """Round trips started on schedule, whatever the replies do, timed from the schedule."""
    mine = await part.layer.new_channel()
    there = (await part.ready(mine))["echo"][0]
    await _warm_up(part, mine, there)
    schedule = Schedule(part, mine, there)
    arrivals = await schedule.run()
    lag = latencies(schedule.lags_s)
    return (
        arrivals.counts()
        | latencies(arrivals.times_s)
        | {"lag_p50_us": lag["p50_us"], "lag_p99_us": lag["p99_us"]}
    )


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
        self._sending: set[asyncio.Task[None]] = set()
        self._start_s = 0.0
        self.arrivals = Arrivals()
        self.lags_s: list[float] = []

    async def run(self) -> Arrivals:
        self._start_s = clock() + self._interval_s
        with ticking(self._start_s, self._interval_s, self._send_due):
            while self.arrivals.sent < self._total or not self.arrivals.complete:
                received = await self._part.received(self._mine)
                if received is None:
                    break
                number = received["id"]
                self.arrivals.note(number, clock() - self._intended_s(number))
        return self.arrivals

    def _intended_s(self, number: int) -> float:
        return self._start_s + number * self._interval_s

    def _send_due(self) -> None:
        now = clock()
        while self.arrivals.sent < self._total and self._intended_s(self.arrivals.sent) <= now:
            task = asyncio.ensure_future(self._send(self.arrivals.sent))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
            self.arrivals.sent += 1

    async def _send(self, number: int) -> None:
        self.lags_s.append(clock() - self._intended_s(number))
        message = {"type": "ping", "id": number, "reply": self._mine}
        await self._part.layer.send(self._there, message)


async def one_way_reader(part: Part) -> Figures:
    """Count what comes out of the named channel, from the first message to the last."""
    channel = part.name("one_way")
    reading = asyncio.create_task(_count(part, channel))
    await asyncio.sleep(0.3)  # pub/sub keeps nothing for those who are not there
    await part.ready(channel)
    arrivals, took_s = await reading
    figures = {"received": arrivals.received, "duplicates": arrivals.duplicates}
    return figures | {"messages_per_s": (arrivals.received - 1) / took_s if took_s else None}


async def _count(part: Part, channel: str) -> tuple[Arrivals, float]:
    """Return what came before the message that says it is the last, and how long that took."""
    arrivals, first_s, last_s = Arrivals(), None, 0.0
    message = await part.layer.receive(channel)
    while message is not None and "last" not in message:
        last_s = perf_counter()
        first_s = first_s or last_s
        arrivals.note(message["id"])
        message = await part.received(channel)
    return arrivals, last_s - first_s if first_s else 0.0


async def one_way_writer(part: Part) -> Figures:
    """Send as fast as the channel takes it."""
    channel = (await part.ready())["one_way_reader"][0]
    sent, end = 0, perf_counter() + part.duration_s
    while perf_counter() < end:
        for _ in range(32):
            await _insist(part.layer, channel, {"type": "x", "id": sent})
            sent += 1
    await _insist(part.layer, channel, {"type": "x", "last": True})
    return {"sent": sent}


async def _insist(layer: Any, channel: str, message: dict[str, Any]) -> None:
    while True:
        try:
            await layer.send(channel, message)
            return
        except ChannelFull:
            # asyncio.sleep() would make a millisecond of it.
            await asyncio.to_thread(sleep, FULL_S)


async def requester(part: Part) -> Figures:
    """Keep a number of requests outstanding."""
    mine, work = await part.layer.new_channel(), part.name("work")
    await part.ready(mine)
    arrivals, start = Arrivals(), perf_counter()

    async def ask() -> None:
        message = {"type": "work", "id": arrivals.sent, "reply": mine}
        arrivals.sent += 1
        await _insist(part.layer, work, message)

    for _ in range(part.options["outstanding"]):
        await ask()
    end = last_s = start + part.duration_s
    while not arrivals.complete:
        received = await part.received(mine)
        if received is None:
            break
        last_s = perf_counter()
        if arrivals.note(received["id"]) and last_s < end:
            await ask()
    return arrivals.counts() | {"requests_per_s": arrivals.received / (last_s - start)}


async def worker(part: Part) -> Figures:
    """Answer what comes on the named channel."""
    serving = asyncio.create_task(_answer(part.layer, part.name("work")))
    await asyncio.sleep(0.3)
    await part.ready()
    return await part.until_stopped(serving)


async def watch(part: Part) -> Figures:
    """Look at an idle process from outside: nothing that it does is ours."""
    idle_pid = int((await part.ready())["idle"][0])
    await asyncio.sleep(0.2)  # what the word to begin cost it
    before_s = cpu_s(idle_pid)
    await asyncio.sleep(part.duration_s)
    return {"cpu_us_per_s": 1e6 * (cpu_s(idle_pid) - before_s) / part.duration_s}


async def idle(part: Part) -> Figures:
    """Wait in receive() for what never comes."""
    waiting = asyncio.create_task(part.layer.receive(await part.layer.new_channel()))
    await asyncio.sleep(0.3)
    await part.ready(str(os.getpid()))
    return await part.until_stopped(waiting)


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
            await part.layer.send(channel, {"type": "x"})
            await part.layer.receive(channel)


async def interfered(part: Part) -> Figures:
    """Paced round trips beside a busy process: before it uses the layer, and while it does."""
    mine = await part.layer.new_channel()
    others = await part.ready(mine)
    there, control = others["echo"][0], others["busy"][0]
    await _warm_up(part, mine, there)
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
