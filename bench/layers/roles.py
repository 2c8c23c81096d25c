"""What each process of a measure does. All of them get a ``Part`` and return their figures.

A role says what others must know of it and is told what they said (``part.ready``), works, and
returns. One that serves others does so until it is stopped (``part.until_stopped``).
"""

import asyncio
import os
from time import perf_counter
from typing import Any

from bench.layers.acknowledgements import Acknowledgements
from bench.layers.arrivals import Arrivals, latencies
from bench.layers.part import Part
from bench.layers.processor import cpu_s

Figures = dict[str, Any]

WARM_UP = 30  # round trips
PROBE_S = 0.1
PROBE = {"type": "probe", "id": -1}


async def echo(part: Part) -> Figures:
    """Send each message back to where it says."""
    channel = await part.layer.new_channel()
    await part.ready(channel)
    return await part.until_stopped(_answer(part.layer, channel))


async def _answer(layer: Any, channel: str) -> None:
    while True:
        message = await layer.receive(channel)
        if message["type"] != PROBE["type"]:
            await layer.send(message["reply"], message)


async def listen(layer: Any, channel: str) -> None:
    """Return when what is sent to ``channel`` arrives here; more probes than one may follow.

    Redis pub/sub keeps nothing for those who do not wait yet, and does not say when they do.
    """
    reading = asyncio.create_task(layer.receive(channel))
    while not reading.done():
        await layer.send(channel, PROBE)
        await asyncio.wait((reading,), timeout=PROBE_S)


async def ping(part: Part) -> Figures:
    """Round trips, one after the other."""
    mine = await part.layer.new_channel()
    there = (await part.ready(mine))["echo"][0]
    await warm_up(part, mine, there)
    arrivals, end = Arrivals(), perf_counter() + part.duration_s
    while (start := perf_counter()) < end:
        message = {"type": "ping", "id": arrivals.sent, "reply": mine}
        arrivals.sent += 1
        await part.layer.send(there, message)
        received = await part.received(mine)
        if received is None:
            break
        arrivals.note(received["id"], perf_counter() - start)
    return arrivals.counts() | latencies(arrivals.times_s) | {"warm_up": WARM_UP}


async def warm_up(part: Part, mine: str, there: str) -> None:
    """Have both sides open what they open once."""
    for _ in range(WARM_UP):
        await part.layer.send(there, {"type": "warm.up", "reply": mine})
        await part.received(mine)


async def one_way_reader(part: Part) -> Figures:
    """Count what comes out of the named channel, from the first message to the last."""
    channel = part.name("one_way")
    await listen(part.layer, channel)
    reading = asyncio.create_task(_count(part, channel))
    await part.ready(channel)
    arrivals, took_s = await reading
    figures = {"received": arrivals.received, "duplicates": arrivals.duplicates}
    return figures | {"messages_per_s": (arrivals.received - 1) / took_s if took_s else None}


async def _count(part: Part, channel: str) -> tuple[Arrivals, float]:
    """Return what came before the message that says it is the last, and how long that took."""
    arrivals, acknowledgements = Arrivals(), Acknowledgements(part)
    lot = part.options["lot"]
    message = await part.layer.receive(channel)
    while message["id"] == PROBE["id"]:
        message = await part.layer.receive(channel)
    first_s = last_s = perf_counter()
    while message is not None and "last" not in message:
        if arrivals.note(message["id"]) and arrivals.received % lot == 0:
            last_s = perf_counter()
            acknowledgements.give()
        message = await part.received(channel)
    acknowledgements.close()
    return arrivals, last_s - first_s


async def one_way_writer(part: Part) -> Figures:
    """Send as fast as messages arrive, at most a window of them ahead of the reader."""
    acknowledgements = Acknowledgements(part)
    channel = (await part.ready())["one_way_reader"][0]
    lot, window = part.options["lot"], part.options["window"]
    sent = arrived = 0
    end = perf_counter() + part.duration_s
    while perf_counter() < end:
        for _ in range(lot):
            await part.layer.send(channel, {"type": "x", "id": sent})
            sent += 1
        while sent - arrived > window - lot:
            come = await acknowledgements.come()
            if not come:
                return {"sent": sent}
            arrived += lot * come
    while sent > arrived and (come := await acknowledgements.come()):
        arrived += lot * come
    await part.layer.send(channel, {"type": "x", "last": True})
    acknowledgements.close()
    return {"sent": sent}


async def requester(part: Part) -> Figures:
    """Keep a number of requests outstanding."""
    mine, work = await part.layer.new_channel(), part.name("work")
    await part.ready(mine)
    arrivals, start = Arrivals(), perf_counter()

    async def ask() -> None:
        message = {"type": "work", "id": arrivals.sent, "reply": mine}
        arrivals.sent += 1
        await part.layer.send(work, message)

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
    await listen(part.layer, part.name("work"))
    serving = asyncio.create_task(_answer(part.layer, part.name("work")))
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
