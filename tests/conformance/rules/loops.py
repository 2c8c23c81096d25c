"""Threads, event loops and what a layer keeps open: within one process."""

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import psutil
import pytest
from asgiref.sync import async_to_sync

from ..base import LayerRules, MakeLayer, receive, unique

WOKEN_S = 1.0  # a waiter that is woken is woken at once; one that is not, by its timeout


async def in_thread(work: Callable[[], Any], timeout_s: float = 10.0) -> Any:
    """Run ``work`` in a thread that has no event loop; return or raise what it did.

    In a daemon thread: one that a broken layer never lets end keeps no test run from ending.
    """
    done: concurrent.futures.Future[Any] = concurrent.futures.Future()
    done.set_running_or_notify_cancel()  # a wait that times out leaves the thread its future

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001 - whatever it was, it is raised where it is awaited
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wait_for(asyncio.wrap_future(done), timeout_s)


async def in_loop_of_its_own(
    coroutine: Callable[[], Coroutine[Any, Any, Any]],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> Any:
    """Run ``coroutine`` in a thread with another event loop, while this one goes on."""

    def run() -> Any:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(coroutine())

    return await in_thread(run)


class Loops(LayerRules):
    """Django calls a layer from sync threads; some servers run several loops."""

    async def test_async_to_sync_sends(self, layer: Any) -> None:
        """async_to_sync(layer.send) in a thread wakes a receive() that waits in the loop."""
        channel, loop = await layer.new_channel(), asyncio.get_running_loop()
        waiting = asyncio.create_task(receive(layer, channel, 0.1 + WOKEN_S))
        await asyncio.sleep(0.1)

        def send() -> None:
            time.sleep(0.1)  # until the loop sleeps: what comes before that needs no waking
            async_to_sync(layer.send)(channel, {"type": "x", "id": 1})

        # A bare thread: the end of one that asyncio knows would wake the loop by itself.
        sender = threading.Thread(target=send, daemon=True)
        start = loop.time()
        sender.start()
        try:
            assert (await waiting)["id"] == 1
            assert loop.time() - start < 0.9 * WOKEN_S, "woken by its timeout, not by the message"
        finally:
            # A layer closes what it keeps for a loop when that loop ends: not while ours flushes.
            await asyncio.to_thread(sender.join, 10)

    async def test_threads_send_at_once(self, make_layer: MakeLayer) -> None:
        """Four threads that send at the same time lose, double and mix up nothing."""
        layer = make_layer(capacity=1000)
        channel = await layer.new_channel()

        def send_some(first: int) -> None:
            async_to_sync(send_numbered)(layer, channel, range(first, first + 50))

        await asyncio.gather(*(in_thread(lambda n=n: send_some(n * 50)) for n in range(4)))
        received = [(await receive(layer, channel))["id"] for _ in range(200)]
        assert sorted(received) == list(range(200))
        for first in range(0, 200, 50):
            assert [one for one in received if first <= one < first + 50] == list(
                range(first, first + 50)
            )

    async def test_two_loops_receive(self, make_layer: MakeLayer) -> None:
        """Two event loops of one process each receive on a channel of their own, at once."""
        layer, ready, names = make_layer(), threading.Event(), []

        async def other() -> int:
            names.append(await layer.new_channel())
            ready.set()
            return (await receive(layer, names[0]))["id"]

        mine, loop = await layer.new_channel(), asyncio.get_running_loop()
        waiting = asyncio.create_task(receive(layer, mine, 5 * WOKEN_S))
        elsewhere = asyncio.create_task(in_loop_of_its_own(other))
        await asyncio.to_thread(ready.wait, 5)
        await asyncio.sleep(0.1)
        start = loop.time()
        await layer.send(names[0], {"type": "x", "id": 1})
        await layer.send(mine, {"type": "x", "id": 2})
        try:
            assert await asyncio.gather(elsewhere, waiting) == [1, {"type": "x", "id": 2}]
            assert loop.time() - start < 0.9 * WOKEN_S, "woken by its timeout, not by the message"
        finally:
            await asyncio.wait([elsewhere, waiting])  # or the flush that follows meets them

    async def test_uvloop_is_served(self, make_layer: MakeLayer) -> None:
        """The layer works in uvloop, groups and waiting receive() included."""
        uvloop = pytest.importorskip("uvloop")

        async def use() -> int:
            layer, group = make_layer(), unique("group")
            channel = await layer.new_channel()
            await layer.group_add(group, channel)
            waiting = asyncio.create_task(receive(layer, channel))
            await asyncio.sleep(0.05)
            await layer.group_send(group, {"type": "x", "id": 1})
            return (await waiting)["id"]

        assert await in_loop_of_its_own(use, uvloop.new_event_loop) == 1

    async def test_descriptors_do_not_leak(self, make_layer: MakeLayer) -> None:
        """300 channels that were used leave no descriptor behind."""
        layer = make_layer()
        await use_channels(layer, 5)  # what the layer opens once
        process = psutil.Process()
        before = process.num_fds()
        await use_channels(layer, 300)
        assert process.num_fds() <= before + 3


async def send_numbered(layer: Any, channel: str, numbers: range) -> None:
    for number in numbers:
        await layer.send(channel, {"type": "x", "id": number})


async def use_channels(layer: Any, number: int) -> None:
    """Send to so many channels and receive; that a message comes is for other rules to say."""
    for _ in range(number):
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "x"})
        with contextlib.suppress(TimeoutError):
            await receive(layer, channel, 0.5)
