"""The two generators of a fan-out on one cell: they count the same."""

import asyncio
import json
import sys
import urllib.request
from pathlib import Path

import psutil
from hdrh.histogram import HdrHistogram

from bench.fanout.cells import Cell
from bench.fanout.measure import expected_deliveries, per_topic
from bench.variants import Variant

ROOT = Path(__file__).parent.parent.parent.parent
USERS, EACH, POOL, VISITORS = 20, 5, 20, 2
PATIENCE_S = 30.0


def open_sockets(port):
    return sum(
        one.status == psutil.CONN_ESTABLISHED and one.laddr.port == port
        for one in psutil.net_connections("tcp4")
    )


async def until_connected(port, sockets):
    async with asyncio.timeout(PATIENCE_S):
        while open_sockets(port) < sockets:  # noqa: ASYNC110 - another process's sockets
            await asyncio.sleep(0.1)
    await asyncio.sleep(1.0)  # to subscribe


async def test_generators_agree_to_the_record_on_the_cell_that_both_run(serve, publish, tmp_path):
    authority = serve()
    port = int(authority.partition(":")[2])
    spec = {"url": f"http://{authority}", "users": USERS, "subscriptions": EACH, "topics": POOL}
    spec["churning"] = VISITORS
    picows = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.fanout.generator", json.dumps(spec)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    path = tmp_path / "locust.json"
    # Locust's run time runs from its start: the other one is to be ready by then.
    ready = json.loads(await picows.stdout.readline())
    locust = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "locust", "-f", "locustfiles/fanout.py", "--headless"),
        *("--host", f"http://{authority}", "-t", "12s", "--result-json", str(path)),
        *("--connections", str(USERS), "--subscriptions", str(EACH), "--topics", str(POOL)),
        *("--loglevel", "WARNING", "--only-summary"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=ROOT,
    )
    try:
        assert ready["users"] == USERS
        await until_connected(port, 2 * USERS + VISITORS)
        statistics = await publish(topics=POOL, rate=200, count=400).statistics()
        cell = Cell("compare", Variant("uvicorn", "ipc"), USERS, EACH, POOL)
        expected = expected_deliveries(cell, statistics["publishers"])
        published = per_topic(cell, statistics["publishers"])
        picows.stdin.write(json.dumps({"published": published}).encode() + b"\n")
        told = json.loads(await picows.stdout.readline())
        await asyncio.wait_for(locust.wait(), PATIENCE_S)
    finally:
        for process in (picows, locust):
            if process.returncode is None:
                process.kill()
                await process.wait()
        picows._transport.close()
    with urllib.request.urlopen(f"http://{authority}/healthz") as answer:  # noqa: ASYNC210
        hub = json.loads(answer.read())["hub"]
    counted = json.loads(path.read_text())
    assert statistics["published"] == 400
    assert told["received"] == counted["counters"]["received"] == expected == 2000
    assert told["missing"] == 0
    for counters in (told, counted["counters"]):
        wrong = ("lost", "duplicated", "reordered", "corrupt", "foreign")
        assert [counters[name] for name in wrong] == [0] * 5
    # And with what the hub counted, those included who came and went meanwhile.
    visitors = told["churned"]
    assert visitors["visits"] >= VISITORS
    assert visitors["received"] > 0
    assert hub["delivered"] == 2 * expected + visitors["received"]
    assert (hub["received"], hub["dropped"], hub["abandoned"]) == (400, 0, 0)
    for payload in (told["latency_us"], counted["latency_us"]):
        assert HdrHistogram.decode(payload.encode()).get_total_count() == expected
