"""Event loops of every kind, several of them, threads, and code that has none."""

import asyncio
import threading

import pytest
import uvloop
from asgiref.sync import async_to_sync
from channels.exceptions import ChannelFull

from channels_ipc import IPCChannelLayer


@pytest.fixture
def ends(directory):
    """Two layers, outside any loop."""
    layers = [IPCChannelLayer(directory=directory, capacity=500) for _ in range(2)]
    yield layers
    for layer in layers:
        layer._end()


async def exchange(mine, other, count=200):
    """Send ``count`` messages there and back, to and from a channel of each end."""
    here, there = await mine.new_channel(), await other.new_channel()

    async def echo():
        while True:
            message = await other.receive(there)
            await other.send(here, message)

    task = asyncio.create_task(echo())
    for n in range(count):
        await mine.send(there, {"type": "t", "n": n})
        message = await asyncio.wait_for(mine.receive(here), 10)
        assert message["n"] == n
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_loop_of_either_kind(ends, factory):
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(exchange(*ends))


def test_one_loop_after_another(ends):
    for factory in (asyncio.new_event_loop, uvloop.new_event_loop, asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(exchange(*ends, 20))


def test_debug_mode_of_asyncio(ends):
    asyncio.run(exchange(*ends, 50), debug=True)


def test_reactor_of_daphne(run):
    said = run("""
    from twisted.internet import asyncioreactor
    loop = asyncio.new_event_loop()
    asyncioreactor.install(loop)
    from twisted.internet import reactor
    from twisted.internet.defer import Deferred
    mine, other = layer(), layer()
    async def main():
        here, there = await mine.new_channel(), await other.new_channel()
        for n in range(50):
            await mine.send(there, {"type": "t", "n": n})
            await other.send(here, await other.receive(there))
            assert (await mine.receive(here))["n"] == n
        waiting = asyncio.create_task(mine.receive("named"))
        await asyncio.sleep(0.05)
        await other.send("named", {"type": "t", "n": "named"})
        say((await waiting)["n"])
    def finish(result):
        say("failed", result) if result else None
        reactor.stop()
    reactor.callWhenRunning(
        lambda: Deferred.fromFuture(loop.create_task(main())).addBoth(finish)
    )
    reactor.run()
    """)
    assert said == "named"


def test_synchronous_code(ends):
    mine, other = ends
    channel = async_to_sync(mine.new_channel)()
    for n in range(5):
        async_to_sync(other.send)(channel, {"type": "t", "n": n})
        async_to_sync(other.send)("named", {"type": "t", "n": n})
        assert async_to_sync(mine.receive)(channel)["n"] == n
        assert async_to_sync(mine.receive)("named")["n"] == n


def test_loops_that_are_gone_keep_no_descriptor(ends):
    import os

    mine = ends[0]
    channel = async_to_sync(mine.new_channel)()
    counts = []

    async def wait_a_moment(name):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(mine.receive(name), 0.005)

    for _ in range(10):
        asyncio.run(wait_a_moment(channel))
        asyncio.run(wait_a_moment("named"))
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[-1] <= counts[1]


def test_message_goes_past_a_receiver_whose_loop_is_gone(ends):
    mine, other = ends
    loop = asyncio.new_event_loop()
    channel = loop.run_until_complete(mine.new_channel())
    task = loop.create_task(mine.receive(channel))
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()

    async def living():
        waiting = asyncio.create_task(mine.receive(channel))
        await asyncio.sleep(0.01)
        await other.send(channel, {"type": "t", "n": 1})
        return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(living())["n"] == 1
    task._log_destroy_pending = False


def test_threads_with_loops_share_channels_exactly_once(ends):
    mine, other = ends
    channel = async_to_sync(mine.new_channel)()
    received, failures = [], []
    lock = threading.Lock()

    async def consume(name):
        while (message := await mine.receive(name))["n"] is not None:
            with lock:
                received.append((name, message["n"]))

    async def produce(name, numbers, layer):
        for n in numbers:
            while True:
                try:
                    await layer.send(name, {"type": "t", "n": n})
                    break
                except ChannelFull:
                    await asyncio.sleep(0.001)

    def run(function, *args):
        try:
            asyncio.run(function(*args))
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    names = (channel, "named")
    consumers = [
        threading.Thread(target=run, args=(consume, name)) for name in names for _ in range(2)
    ]
    producers = [
        threading.Thread(target=run, args=(produce, name, range(start, 1000, 2), layer))
        for name in names
        for start, layer in enumerate((mine, other))
    ]
    for thread in consumers + producers:
        thread.start()
    for thread in producers:
        thread.join(30)
    for name in names:
        asyncio.run(produce(name, [None, None], other))
    for thread in consumers:
        thread.join(30)
    assert failures == []
    assert sorted(received) == sorted((name, n) for name in names for n in range(1000))


def test_sending_from_a_thread_wakes_a_waiting_loop(ends):
    mine = ends[0]

    async def main():
        channel = await mine.new_channel()
        for layer in ends:
            for name in (channel, "named"):
                waiting = asyncio.create_task(mine.receive(name))
                await asyncio.sleep(0.01)
                await asyncio.to_thread(async_to_sync(layer.send), name, {"type": "t", "n": name})
                assert (await asyncio.wait_for(waiting, 5))["n"] == name

    asyncio.run(main())
