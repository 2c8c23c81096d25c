"""Promises about processes, kept by real ones: each of these starts, stops or kills some."""

import asyncio
import os
import signal
import time

import pytest
from channels.exceptions import ChannelFull

ECHO = """
async def main():
    mine = layer()
    channel = await mine.new_channel()
    say(channel)
    while True:
        message = await mine.receive(channel)
        await mine.send(message["reply"], {"type": "t", "n": message["n"]})
asyncio.run(main())
"""

CONSUMER = """
async def main():
    mine = layer(capacity=1000)
    say("ready")
    while (message := await mine.receive("work"))["n"] is not None:
        say(message["n"])
    await mine.close()
asyncio.run(main())
"""


async def receive(layer, channel, count=1, timeout_s=10):
    return [(await asyncio.wait_for(layer.receive(channel), timeout_s))["n"] for _ in range(count)]


async def until_accepted(layer, channel, message):
    for _ in range(2000):
        try:
            return await layer.send(channel, message)
        except ChannelFull:
            await asyncio.sleep(0.005)
    pytest.fail(f"{channel} stayed full")


async def test_request_and_reply_between_processes(make_layer, start):
    layer = make_layer()
    echo = await start(ECHO).next_line()
    mine = await layer.new_channel()
    for n in range(200):
        await layer.send(echo, {"type": "t", "n": n, "reply": mine})
        assert await receive(layer, mine) == [n]


@pytest.mark.parametrize("consumers", [2, 4])
async def test_named_message_goes_to_exactly_one_of_several_processes(make_layer, start, consumers):
    layer = make_layer(capacity=1000)
    programs = [start(CONSUMER) for _ in range(consumers)]
    for program in programs:
        assert await program.next_line() == "ready"
    for n in range(2000):
        await until_accepted(layer, "work", {"type": "t", "n": n, "body": b"x" * (n % 5 * 400)})
    for _ in programs:
        await until_accepted(layer, "work", {"type": "t", "n": None})
    said = [await asyncio.to_thread(program.result) for program in programs]
    each = [[int(n) for n in one.split()] for one in said]
    assert sorted(n for one in each for n in one) == list(range(2000))
    assert all(one == sorted(one) for one in each)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM], ids=["KILL", "TERM"])
async def test_killing_consumers_neither_doubles_nor_loses_for_the_living(
    make_layer, start, signal_number
):
    layer = make_layer(capacity=1000)
    survivor = start(CONSUMER)
    assert await survivor.next_line() == "ready"
    heard, n = [], 0
    for _ in range(8):
        victim = start(CONSUMER)
        assert await victim.next_line() == "ready"
        for _ in range(100):
            await until_accepted(layer, "work", {"type": "t", "n": n})
            n += 1
        victim.process.send_signal(signal_number)
        out, _ = await asyncio.to_thread(victim.process.communicate)
        heard += [int(one) for one in out.split()]
    await until_accepted(layer, "work", {"type": "t", "n": None})
    heard += [int(one) for one in (await asyncio.to_thread(survivor.result)).split()]
    assert len(heard) == len(set(heard))
    assert len(heard) >= n - 8  # each victim takes at most the one it was about to say with it


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM], ids=["KILL", "TERM"])
async def test_storm_of_killed_senders_stalls_nobody_and_leaves_nothing(
    make_layer, start, directory, signal_number
):
    layer = make_layer(capacity=1000)
    channel = await layer.new_channel()
    source = """
    async def main():
        mine, n = layer(capacity=1000), 0
        own = await mine.new_channel()
        await mine.group_add("room", own)
        say("ready")
        while True:
            try:
                body = b"x" * (n % 3 * 4000)
                await mine.send(args[0], {"type": "t", "who": os.getpid(), "n": n, "body": body})
                n += 1
            except ChannelFull:
                pass
    asyncio.run(main())
    """
    last = {}

    async def drain():
        while True:
            message = await layer.receive(channel)
            assert message["n"] == last.get(message["who"], -1) + 1
            last[message["who"]] = message["n"]

    task = asyncio.create_task(drain())
    for _ in range(6):
        victim = start(source, channel)
        assert await victim.next_line() == "ready"
        await asyncio.sleep(0.1)
        victim.process.send_signal(signal_number)
        await asyncio.to_thread(victim.process.wait)
    await asyncio.sleep(0.2)
    assert not task.done(), task.exception()
    task.cancel()
    assert len(last) == 6
    await layer.group_send("room", {"type": "t"})
    assert os.listdir(f"{directory}/asgi/n") == [layer._endpoint._inbox.node]
    assert layer.malformed.count == 0


async def test_stopped_process_is_full_for_its_senders_only(make_layer, start):
    layer = make_layer(capacity=20)
    stopped, echo = start(ECHO), start(ECHO)
    stuck, healthy = await stopped.next_line(), await echo.next_line()
    os.kill(stopped.pid, signal.SIGSTOP)
    mine, sent = await layer.new_channel(), 0
    with pytest.raises(ChannelFull):
        for sent in range(100_000):
            await layer.send(stuck, {"type": "t", "n": sent, "reply": mine, "body": b"x" * 500})
    assert sent >= 20
    await layer.send(healthy, {"type": "t", "n": "healthy", "reply": mine})
    assert await receive(layer, mine) == ["healthy"]
    await layer.group_add("room", stuck)
    await layer.group_send("room", {"type": "t", "n": 1, "body": b"x" * 3000})
    assert layer.dropped.count == 1
    os.kill(stopped.pid, signal.SIGCONT)
    assert await receive(layer, mine) == [0]


async def test_flush_reaches_a_stopped_process(make_layer, start):
    layer = make_layer()
    echo = start(ECHO)
    channel, mine = await echo.next_line(), await layer.new_channel()
    os.kill(echo.pid, signal.SIGSTOP)
    for n in range(10):
        await layer.send(channel, {"type": "t", "n": n, "reply": mine, "body": b"x" * n * 600})
    await layer.flush()
    os.kill(echo.pid, signal.SIGCONT)
    await layer.send(channel, {"type": "t", "n": "later", "reply": mine})
    assert await receive(layer, mine) == ["later"]


async def test_flush_empties_every_process(make_layer, run):
    layer = make_layer()
    channel = await layer.new_channel()
    await layer.send(channel, {"type": "t", "n": 1})
    await layer.send("named", {"type": "t", "n": 1})
    await layer.group_add("room", channel)
    source = """
    async def main():
        mine = layer()
        await mine.flush()
        await mine.group_send("room", {"type": "t", "n": 2})
        await mine.send(args[0], {"type": "t", "n": 3})
    asyncio.run(main())
    """
    await asyncio.to_thread(run, source, channel)
    await layer.send("named", {"type": "t", "n": 4})
    assert await receive(layer, channel) == [3]
    assert await receive(layer, "named") == [4]


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), 9)"], ids=["exit", "killed"])
async def test_named_message_outlives_its_sender(make_layer, start, end):
    source = """
    async def main():
        mine = layer()
        for n, size in enumerate((1, 2000, 1_000_000)):
            await mine.send("work", {"type": "t", "n": n, "body": b"x" * size})
        END
    asyncio.run(main())
    """
    for _ in range(2):
        await asyncio.to_thread(start(source.replace("END", end)).process.wait)
    assert await receive(make_layer(), "work", 6) == [0, 1, 2] * 2


async def test_named_messages_outlive_their_last_receiver(make_layer, start):
    layer = make_layer()
    victim = start("""
    async def main():
        mine = layer()
        say((await mine.receive("work"))["n"])
        await asyncio.sleep(60)
    asyncio.run(main())
    """)
    await layer.send("work", {"type": "t", "n": "first"})
    assert await victim.next_line() == "first"
    for n in range(5):
        await layer.send("work", {"type": "t", "n": n})
    victim.process.kill()
    await asyncio.to_thread(victim.process.wait)
    for n in range(5, 10):
        await layer.send("work", {"type": "t", "n": n})
    await layer.close()
    other = make_layer()
    assert await receive(other, "work", 10) == list(range(10))


async def waiting_a_moment(layer):
    """Have the layer's loop listen to its mailbox, as any server's does."""
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(layer.receive(await layer.new_channel()), 0.01)


@pytest.mark.parametrize("order", ["receiver first", "receiver last"])
async def test_named_messages_survive_a_killed_receiver_where_anybody_has_them_open(
    make_layer, start, order
):
    bystander, sender = make_layer(), make_layer()
    if order == "receiver last":
        await asyncio.create_task(waiting_a_moment(bystander))
    victim = start("""
    async def main():
        mine = layer()
        try: await asyncio.wait_for(mine.receive("work"), 0.01)
        except TimeoutError: say("ready")
        await asyncio.sleep(60)
    asyncio.run(main())
    """)
    assert await victim.next_line() == "ready"
    if order == "receiver first":
        await bystander.new_channel()
    await asyncio.sleep(0.05)  # the bystander hears of the receiver
    for n in range(5):
        await sender.send("work", {"type": "t", "n": n})
    await sender.close()
    victim.process.kill()
    await asyncio.to_thread(victim.process.wait)
    assert await receive(make_layer(), "work", 5) == list(range(5))


async def test_receiver_that_exits_leaves_what_it_had_not_received(make_layer, run):
    source = """
    async def main():
        mine = layer()
        for n in range(5):
            await mine.send("work", {"type": "t", "n": n})
        assert (await mine.receive("work"))["n"] == 0
    asyncio.run(main())
    """
    await asyncio.to_thread(run, source)
    assert await receive(make_layer(), "work", 4) == [1, 2, 3, 4]


async def test_restarted_process_with_the_same_prefix_works_at_once(make_layer, start):
    layer = make_layer()
    mine = await layer.new_channel()
    for n in range(3):
        echo = start(ECHO)
        channel = await echo.next_line()
        await layer.send(channel, {"type": "t", "n": n, "reply": mine})
        assert await receive(layer, mine) == [n]
        echo.process.kill()
        await asyncio.to_thread(echo.process.wait)
        await layer.send(channel, {"type": "t", "n": "lost", "reply": mine})
    assert len(layer._endpoint.directory.nodes()) == 1


async def test_message_to_a_dead_process_is_dropped_in_silence(make_layer, run):
    source = """
    async def main():
        say(await layer().new_channel())
    asyncio.run(main())
    """
    channel = await asyncio.to_thread(run, source)
    layer = make_layer(capacity=2)
    for _ in range(10):
        await layer.send(channel, {"type": "t"})


async def test_big_message_to_a_process_that_another_has_buried_is_dropped_in_silence(
    make_layer, start
):
    first, second = make_layer(), make_layer()
    echo = start(ECHO)
    channel = await echo.next_line()
    for layer in (first, second):
        mine = await layer.new_channel()
        await layer.send(channel, {"type": "t", "n": 1, "reply": mine})
        assert await receive(layer, mine) == [1]
    echo.process.kill()
    await asyncio.to_thread(echo.process.wait)
    for layer in (first, second):
        await layer.send(channel, {"type": "t", "body": b"x" * 10_000})


async def test_leaving_a_group_is_not_lost_on_a_full_mailbox(make_layer, start, directory):
    layer = make_layer(capacity=20)
    member = start("""
    async def main():
        mine = layer()
        channels = [await mine.new_channel() for _ in range(2)]
        for channel in channels:
            await mine.group_add("room", channel)
        say(*channels)
        while (await mine.receive(channels[0]))["n"] != "stop": pass
        say("sees stop")
        say((await mine.receive(channels[1]))["n"])
        files = os.listdir(f"{directory}/asgi/n/{channels[1].split('.')[1][:16]}")
        say([name for name in files if name.startswith("left-")])
    asyncio.run(main())
    """)
    leaving, other = (await member.next_line()).split()
    os.kill(member.pid, signal.SIGSTOP)
    with pytest.raises(ChannelFull):
        while True:
            await layer.send(leaving, {"type": "t", "n": 0, "body": b"x" * 3000})
    for _ in range(100):  # frames of the same size: then there is no room for the last
        await layer.group_discard("hall", other)
    await layer.group_discard("room", other)
    folder = f"{directory}/asgi/n/{other.split('.')[1].split('!')[0]}"
    assert any(name.startswith("left-") for name in os.listdir(folder))
    os.kill(member.pid, signal.SIGCONT)
    await until_accepted(layer, leaving, {"type": "t", "n": "stop"})
    assert await member.next_line() == "sees stop"
    await layer.group_send("room", {"type": "t", "n": "to the group"})
    await layer.send(other, {"type": "t", "n": "to itself"})
    assert await asyncio.to_thread(member.result) == "to itself\n[]"
    assert layer.dropped.count == 0


async def test_group_crosses_processes(make_layer, start):
    layer = make_layer()
    source = """
    async def main():
        mine = layer()
        channels = [await mine.new_channel() for _ in range(10)]
        for channel in channels:
            await mine.group_add("room", channel)
        say("ready")
        for channel in channels:
            say((await mine.receive(channel))["n"])
    asyncio.run(main())
    """
    programs = [start(source) for _ in range(3)]
    for program in programs:
        assert await program.next_line() == "ready"
    await layer.group_send("room", {"type": "t", "n": 7})
    for program in programs:
        assert await asyncio.to_thread(program.result) == "\n".join(["7"] * 10)


def test_forked_child_has_channels_of_its_own_and_leaves_its_parents_alone(run):
    said = run("""
    mine = layer()
    async def parent_before():
        channel = await mine.new_channel()
        await mine.send(channel, {"type": "t", "n": "parent"})
        await mine.group_add("room", channel)
        await mine.send("work", {"type": "t", "n": "work"})
        return channel
    async def child(parent_channel):
        own = await mine.new_channel()
        assert own.split("!")[0] != parent_channel.split("!")[0]
        await mine.send(own, {"type": "t", "n": "child"})
        assert (await mine.receive(own))["n"] == "child"
        await mine.send(parent_channel, {"type": "t", "n": "from child"})
        await mine.group_send("room", {"type": "t", "n": "to all"})
        await mine.close()
    async def parent_after(channel):
        say([(await mine.receive(channel))["n"] for _ in range(3)])
        say((await mine.receive("work"))["n"])
    channel = asyncio.run(parent_before())
    pid = os.fork()
    if not pid:
        asyncio.run(child(channel))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    asyncio.run(parent_after(channel))
    """)
    assert said.splitlines() == ["['parent', 'from child', 'to all']", "work"]


async def test_mailbox_of_a_dead_parent_is_dead_though_its_child_lives(make_layer, start):
    program = start("""
    async def main():
        say(await layer().new_channel())
    mine = layer()
    say(asyncio.run(mine.new_channel()))
    pid = os.fork()
    if pid:
        say(pid)
        os.kill(os.getpid(), 9)
    time.sleep(30)
    """)
    channel = await program.next_line()
    child = int(await program.next_line())
    try:
        await asyncio.to_thread(program.process.wait)
        layer = make_layer(capacity=1)
        for _ in range(5):
            await layer.send(channel, {"type": "t"})
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.timing
def test_idle_process_uses_no_cpu(start):
    program = start("""
    async def main():
        mine = layer()
        for _ in range(10):
            asyncio.create_task(mine.receive(await mine.new_channel()))
        asyncio.create_task(mine.receive("work"))
        await asyncio.sleep(0.2)
        say("ready")
        before = time.process_time()
        await asyncio.sleep(1)
        say(time.process_time() - before)
        os._exit(0)
    asyncio.run(main())
    """)
    program.line()
    assert float(program.line()) < 0.02


def test_started_together_all_find_each_other(start):
    source = """
    async def main():
        mine = layer()
        channel = await mine.new_channel()
        await mine.group_add("room", channel)
        say("ready")
        await asyncio.sleep(2)
        await mine.group_send("room", {"type": "t"})
        for _ in range(6):
            await asyncio.wait_for(mine.receive(channel), 10)
        await asyncio.sleep(0.5)
    asyncio.run(main())
    """
    began = time.monotonic()
    programs = [start(source) for _ in range(6)]
    for program in programs:
        program.result()
    assert time.monotonic() - began < 30
