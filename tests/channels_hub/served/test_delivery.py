"""What is promised of delivery, on real servers: in full, once, in order, and soon enough."""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from channels_hub.records import decode

ROOT = Path(__file__).parent.parent.parent.parent
BIN = Path(sys.executable).parent
PATIENCE_S = 15.0
TOPICS = [f"t{number:06d}" for number in range(20)]
ON_ITS_WAY_NS = 150_000_000
MOST_GROWN = 85 * 1024 * 1024


async def subscribe(socket, topics):
    await socket.send(json.dumps({"subscribe": topics, "id": 1}))
    while True:
        answer = await socket.recv()
        if isinstance(answer, str):
            assert json.loads(answer) == {"subscribed": len(topics), "id": 1}
            return time.time_ns()


async def until(condition):
    """Return when ``condition`` holds, or when that has taken too long: the test asserts it."""
    end = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < end:  # noqa: ASYNC110 - a test, on many things
        await asyncio.sleep(0.05)


class Listener:
    """Reads a socket into ``records`` and tells the server so, from now on.

    ``bodies`` says whether they are kept; ``latencies_s`` are from the publisher's clock.
    """

    def __init__(self, socket, *, bodies=True):
        self.records = []
        self.latencies_s = []
        self._bodies = bodies
        self._task = asyncio.create_task(self._read(socket))

    async def _read(self, socket):
        total = 0
        while True:
            frame = await socket.recv()
            if isinstance(frame, str):
                continue  # the answer to a request
            total += len(frame)
            records, now_ns = decode(frame), time.time_ns()
            self.latencies_s += [(now_ns - record.timestamp_ns) / 1e9 for record in records]
            self.records += (
                records if self._bodies else [replace(record, body=b"") for record in records]
            )
            await socket.send(json.dumps({"received": total}))

    async def settled(self, records):
        """Return what was read, once it is ``records`` and a moment longer, or it stays less."""
        await until(lambda: len(self.records) >= records)
        await asyncio.sleep(0.5)  # for what must not come
        return await self.stop()

    async def stop(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        return self.records


def sequences(records):
    """Return (publisher, topic) -> the sequence numbers in the order they came."""
    found = {}
    for record in records:
        found.setdefault((record.publisher, record.topic), []).append(record.sequence)
    return found


# By group_send a socket may have a hundred messages waiting, and no publisher feels it: so slowly.
@pytest.mark.parametrize(("delivery", "rate"), [("hub", 400), ("group", 40)])
@pytest.mark.parametrize("server", ["uvicorn", "daphne"])
async def test_feed_comes_in_full_once_and_in_order_from_two_publishers(
    serve, publish, topics_socket, server, delivery, rate
):
    authority = serve(server, delivery=delivery)
    async with (
        topics_socket(authority) as a,
        topics_socket(authority) as b,
        topics_socket(authority) as c,
    ):
        for socket in (a, b, c):
            await subscribe(socket, TOPICS)
        listeners = [Listener(socket) for socket in (a, b, c)]
        feed = publish(delivery=delivery, topics=20, publishers=2, count=rate, rate=rate)
        statistics = await feed.statistics()
        got = [await listener.settled(rate) for listener in listeners]
    assert statistics["published"] == rate
    for records in got:
        assert len(records) == rate
        assert all(len(record.body) == 1024 - 30 - 7 for record in records)
        found = sequences(records)
        assert len(found) == 20
        assert all(numbers == list(range(1, rate // 20 + 1)) for numbers in found.values())


async def test_visitors_miss_nothing_after_the_acknowledgement_while_others_come_and_go(
    serve, publish, topics_socket
):
    """A witness has every record's time: a visitor must have all between its ack and its leave.

    It listens at another process, so that the visitors' own joins and leaves each topic with them.
    """
    witnessed, visited = serve(), serve()
    visits = []

    async def visit(number, feed):
        while feed.process.poll() is None:
            topics = TOPICS[number::4]
            async with topics_socket(visited) as socket:
                acknowledged_ns = await subscribe(socket, topics)
                listener = Listener(socket)
                await asyncio.sleep(0.3 + 0.05 * number)
                left_ns = time.time_ns()
                await socket.send(json.dumps({"unsubscribe": topics}))
                await asyncio.sleep(0.3)  # for what was due by then
                visits.append((topics, acknowledged_ns, left_ns, await listener.stop()))

    async with topics_socket(witnessed) as witness:
        await subscribe(witness, TOPICS)
        feed = publish(topics=20, rate=1000, seconds=4)
        listener = Listener(witness)
        await asyncio.gather(*(visit(number, feed) for number in range(4)))
        statistics = await feed.statistics()
        witness_got = await listener.settled(statistics["published"])
    assert len(witness_got) == statistics["published"]
    stamps = {(record.topic, record.sequence): record.timestamp_ns for record in witness_got}
    assert len(stamps) == statistics["published"]
    assert len(visits) > 10
    checked = 0
    for topics, acknowledged_ns, left_ns, records in visits:
        for (_, topic), numbers in sequences(records).items():
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), topic
        # What was published just before the leave may be behind it at the hub.
        due = {
            place
            for place, stamp_ns in stamps.items()
            if place[0] in topics and acknowledged_ns < stamp_ns < left_ns - ON_ITS_WAY_NS
        }
        assert not due - {(record.topic, record.sequence) for record in records}
        checked += len(due)
    assert checked > 500


@pytest.mark.parametrize("server", ["uvicorn", "daphne"])
async def test_client_that_never_reads_slows_nobody_and_costs_bounded_memory(
    serve, publish, topics_socket, server
):
    authority = serve(server)
    alone, many = 4_000, 32_000
    load = {"topics": 20, "rate": 4_500, "message_bytes": 3_500}
    # It reads no further than its own small buffers, and tells the server nothing.
    async with (
        topics_socket(authority, max_queue=1, close_timeout=0.2) as stuck,
        topics_socket(authority) as keen,
    ):
        await subscribe(keen, TOPICS)
        listener = Listener(keen, bodies=False)
        await publish(count=alone, **load).statistics()
        await until(lambda: len(listener.records) >= alone)
        undisturbed_s = p95(listener.latencies_s)
        await subscribe(stuck, TOPICS)
        before = psutil.Process(healthz(authority)["pid"]).memory_info().rss
        statistics = await publish(count=many, **load).statistics()
        got = (await listener.settled(alone + many))[alone:]
        grown = psutil.Process(healthz(authority)["pid"]).memory_info().rss - before
        hub = healthz(authority)["hub"]
        assert statistics["published"] == len(got) == many
        assert all(numbers == list(range(1, many // 20 + 1)) for numbers in sequences(got).values())
        assert p95(listener.latencies_s[alone:]) < 5 * undisturbed_s + 0.1
        # Every stage agrees: what the hub took, gave, and dropped for the one who does not read.
        assert hub["received"] == alone + many
        assert hub["delivered"] == alone + 2 * many
        assert 0 < hub["dropped"] < many
        assert hub["layer_dropped"] == statistics["publishers"][0]["layer_dropped"] == 0
        # History (64 MiB), one outbox (10,000 records), one window and what the sockets hold.
        # All that was published is 107 MiB.
        assert grown < MOST_GROWN


def p95(numbers):
    return sorted(numbers)[len(numbers) * 95 // 100]


def healthz(authority):
    with urllib.request.urlopen(f"http://{authority}/healthz") as answer:
        return json.loads(answer.read())


async def test_publisher_killed_while_publishing_harms_no_one(serve, publish, topics_socket):
    authority = serve()
    async with topics_socket(authority) as socket:
        await subscribe(socket, TOPICS)
        listener = Listener(socket)
        feeds = [
            publish(topics=20, rate=1000, seconds=20),
            publish(topics=20, rate=500, count=1500),
        ]
        await until(lambda: len({record.publisher for record in listener.records}) == 2)
        for child in psutil.Process(feeds[0].process.pid).children(recursive=True):
            child.kill()
        feeds[0].process.kill()
        statistics = await feeds[1].statistics()
        await asyncio.sleep(0.5)
        got = await listener.settled(statistics["published"])
    by_publisher = {}
    for (publisher, _), numbers in sequences(got).items():
        assert numbers == list(range(1, len(numbers) + 1))
        by_publisher[publisher] = by_publisher.get(publisher, 0) + len(numbers)
    survivor = statistics["publishers"][0]
    assert by_publisher[survivor["publisher"]] == survivor["published"] == 1500
    assert len(by_publisher) == 2


async def test_server_killed_while_publishing_is_given_up_and_the_other_misses_nothing(
    serve, publish, topics_socket, started
):
    alive, doomed = serve(), serve()
    async with topics_socket(alive) as kept, topics_socket(doomed) as lost:
        await subscribe(kept, TOPICS)
        await subscribe(lost, TOPICS)
        feed = publish(topics=20, rate=1500, count=6000)
        listener = Listener(kept)
        await until(lambda: listener.records)
        started[1].kill()
        statistics = await feed.statistics()
        got = await listener.settled(6000)
    assert statistics["published"] == 6000
    assert statistics["publishers"][0]["given_up"] == 1
    assert all(numbers == list(range(1, 301)) for numbers in sequences(got).values())
    assert len(got) == 6000


def poll(authority, **request):
    asked = urllib.request.Request(
        f"http://{authority}/poll/",
        json.dumps(request).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked) as response:
        return json.loads(response.read())


async def test_poll_that_moves_between_two_processes_loses_nothing_and_gets_nothing_twice(
    serve, publish
):
    servers = [serve(), serve()]
    topics = TOPICS[:5]
    answer = await asyncio.to_thread(poll, servers[0], topics=topics)
    # Somebody polls at the other one too: a process can vouch for what it subscribes to.
    await asyncio.to_thread(poll, servers[1], topics=topics)
    feed = publish(topics=5, rate=500, count=1000)
    numbers, gaps, turn, empty = {}, [], 0, 0
    while empty < 4:
        turn += 1
        answer = await asyncio.to_thread(
            poll, servers[turn % 2], topics=topics, cursor=answer["cursor"], timeout=1
        )
        gaps += answer["gaps"]
        empty = 0 if answer["messages"] or turn < 10 else empty + 1
        for message in answer["messages"]:
            numbers.setdefault(message["topic"], []).append(message["sequence"])
    assert (await feed.statistics())["published"] == 1000
    assert gaps == []
    assert numbers == {topic: list(range(1, 201)) for topic in topics}


async def test_poll_at_a_process_that_remembers_nothing_names_the_gap(serve, publish):
    first = serve()
    answer = await asyncio.to_thread(poll, first, topics=["t000000"])
    second = serve(layer="inmemory")  # which cannot ask the first
    moved = await asyncio.to_thread(
        poll, second, topics=["t000000"], cursor=answer["cursor"], timeout=1
    )
    assert moved["gaps"] == ["t000000"]


async def test_poll_without_topics_at_a_process_that_does_not_know_them_asks_for_them(serve):
    first, second = serve(), serve()
    answer = await asyncio.to_thread(poll, first, topics=["t000000"])
    with pytest.raises(urllib.error.HTTPError, match="409"):
        await asyncio.to_thread(poll, second, cursor=answer["cursor"], timeout=0)
    again = await asyncio.to_thread(poll, first, cursor=answer["cursor"], timeout=0)
    assert (again["messages"], again["gaps"]) == ([], [])


async def test_socket_survives_a_million_topics_and_nonsense_on_a_real_server(serve, topics_socket):
    async with topics_socket(serve()) as socket:
        for request, complaint in (
            (json.dumps({"subscribe": ["a"] * 1_000_000, "id": 9}), "are more than the"),
            ("{", "not JSON"),
            (json.dumps({"subscribe": ["no such name!"]}), "is not a topic"),
        ):
            await socket.send(request)
            assert complaint in json.loads(await socket.recv())["error"]
        await subscribe(socket, ["good"])


async def test_feed_published_inside_the_server_reaches_its_sockets(serve, topics_socket):
    authority = serve(layer="inmemory")

    def post(body):
        asked = urllib.request.Request(f"http://{authority}/publish/", json.dumps(body).encode())
        with urllib.request.urlopen(asked) as response:
            return json.loads(response.read())

    async with topics_socket(authority) as socket:
        await subscribe(socket, TOPICS)
        listener = Listener(socket)
        statistics = await asyncio.to_thread(post, {"topics": 20, "count": 200, "rate": 200})
        got = await listener.settled(200)
    assert statistics["published"] == len(got) == 200
    with pytest.raises(urllib.error.HTTPError, match="400"):
        await asyncio.to_thread(post, {"topics": 0})


SUPERVISORD = """
[supervisord]
nodaemon = true
logfile = {folder}/supervisord.log
pidfile = {folder}/supervisord.pid
[unix_http_server]
file = {folder}/supervisor.sock
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[supervisorctl]
serverurl = unix://{folder}/supervisor.sock
[include]
files = {root}/supervisor/programs/publisher.conf
"""


async def test_publisher_runs_as_a_program_beside_the_server_until_it_is_stopped(
    serve, start, environment, topics_socket, tmp_path
):
    (ROOT / "run" / "log").mkdir(parents=True, exist_ok=True)
    configuration = tmp_path / "supervisord.conf"
    configuration.write_text(SUPERVISORD.format(folder=tmp_path, root=ROOT))
    deployed = {
        "DEPLOY_ROOT": str(ROOT),
        "DEPLOY_STOP_S": "5",
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }
    async with topics_socket(serve()) as socket:
        await subscribe(socket, TOPICS)
        listener = Listener(socket)
        supervisord = start(
            str(BIN / "supervisord"),
            *("-c", str(configuration)),
            env=environment() | deployed,
            stdout=subprocess.DEVNULL,
        )

        async def control(*words):
            command = (str(BIN / "supervisorctl"), "-c", str(configuration), *words)
            return await asyncio.to_thread(
                subprocess.run,
                command,
                env=os.environ | deployed,
                capture_output=True,
                text=True,
                check=False,
            )

        await until((tmp_path / "supervisor.sock").exists)
        assert "publisher: started" in (await control("start", "publisher")).stdout
        await until(lambda: len(listener.records) >= 20)
        assert "publisher: stopped" in (await control("stop", "publisher")).stdout
        await control("shutdown")
        await asyncio.to_thread(supervisord.wait, PATIENCE_S)
        got = await listener.stop()
    assert len(got) >= 20
    assert all(numbers[0] == 1 for numbers in sequences(got).values())
