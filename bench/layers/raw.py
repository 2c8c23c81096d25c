"""The raw limit: a ping-pong over a pair of FIFOs under the same event loop, with no layer."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any

from bench.layers.arrivals import Arrivals, latencies
from bench.layers.part import Part
from bench.layers.ticks import Alarm, clock

FRAME = b"x" * 64  # about what a small message of a layer takes
Figures = dict[str, Any]


def opened(part: Part, name: str) -> int:
    """Return a descriptor of the FIFO ``name``, which whoever comes first makes."""
    path = f"{part.options['folder']}/{part.name(name)}"
    with suppress(FileExistsError):  # the other process was first
        os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


async def raw_ping(part: Part) -> Figures:
    """Round trips, one after the other, each a callback of the loop."""
    there, back = opened(part, "there"), opened(part, "back")
    await part.ready()
    arrivals, loop, done = Arrivals(), asyncio.get_running_loop(), asyncio.Event()
    end = perf_counter() + part.duration_s
    started = 0.0

    def begin() -> None:
        nonlocal started
        started = perf_counter()
        arrivals.sent += 1
        os.write(there, FRAME)

    def arrived() -> None:
        os.read(back, len(FRAME))
        now = perf_counter()
        arrivals.note(arrivals.received, now - started)
        done.set() if now > end else begin()

    await _reading(back, arrived, begin, loop, done.wait())
    os.close(there)
    return arrivals.counts() | latencies(arrivals.times_s)


async def raw_paced(part: Part) -> Figures:
    """Round trips on schedule: what waking up costs at a low rate, with no layer."""
    there, back = opened(part, "there"), opened(part, "back")
    await part.ready()
    loop, arrivals, alarm = asyncio.get_running_loop(), Arrivals(), Alarm()
    interval_s = part.options["interval_s"]
    start_s, lags_s = clock() + interval_s, []

    def arrived() -> None:
        number = int.from_bytes(os.read(back, len(FRAME))[:8], "little")
        arrivals.note(number, clock() - start_s - number * interval_s)

    loop.add_reader(back, arrived)
    for number in range(int(part.duration_s / interval_s)):
        intended_s = start_s + number * interval_s
        await alarm.until(intended_s)
        lags_s.append(clock() - intended_s)
        arrivals.sent += 1
        os.write(there, number.to_bytes(8, "little").ljust(len(FRAME), b"x"))
    await asyncio.sleep(0.1)  # for the last of them
    loop.remove_reader(back)
    alarm.close()
    os.close(there)
    os.close(back)
    lag = {f"lag_{key}": value for key, value in latencies(lags_s).items()}
    return arrivals.counts() | latencies(arrivals.times_s) | lag


async def raw_echo(part: Part) -> Figures:
    """Write back what is read."""
    there, back = opened(part, "there"), opened(part, "back")
    await part.ready()
    loop = asyncio.get_running_loop()
    stopped = part.until_stopped(asyncio.Event().wait())
    await _reading(there, lambda: _answer(there, back), lambda: None, loop, stopped)
    os.close(back)
    return {}


def _answer(there: int, back: int) -> None:
    os.write(back, os.read(there, len(FRAME)))


async def _reading(
    descriptor: int,
    readable: Callable[[], None],
    begin: Callable[[], None],
    loop: asyncio.AbstractEventLoop,
    until: Any,
) -> None:
    loop.add_reader(descriptor, readable)
    begin()
    await until
    loop.remove_reader(descriptor)
    os.close(descriptor)
