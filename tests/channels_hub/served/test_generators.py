"""The two generators of a fan-out on one cell: they count the same."""

import asyncio
import json
import sys
import urllib.request
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from bench.fanout.cells import GENERATORS, Cell
from bench.fanout.measure import expected_deliveries, per_topic
from bench.variants import Variant

ROOT = Path(__file__).parent.parent.parent.parent
USERS, EACH, POOL, VISITORS = 20, 5, 20, 2
PATIENCE_S = 30.0


@pytest.fixture
async def generators():
    """Return a function that starts a generator and waits until all its users are subscribed."""
    started = []

    async def generator(module, spec):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, json.dumps(spec)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        started.append(process)
        ready = await heard(process)
        assert (ready["ready"], ready["users"]) == (True, spec["users"])
        return process

    yield generator
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.wait()
        process._transport.close()


async def heard(process):
    return json.loads(await asyncio.wait_for(process.stdout.readline(), PATIENCE_S))


async def test_generators_agree_to_the_record_on_the_cell_that_both_run(serve, publish, generators):
    authority = serve()
    spec = {"url": f"http://{authority}", "users": USERS, "subscriptions": EACH, "topics": POOL}
    picows = await generators(GENERATORS["picows"], spec | {"churning": VISITORS})
    locust = await generators(GENERATORS["Locust"], spec)
    statistics = await publish(topics=POOL, rate=200, count=400).statistics()
    cell = Cell("compare", Variant("uvicorn", "ipc"), USERS, EACH, POOL)
    expected = expected_deliveries(cell, statistics["publishers"])
    published = per_topic(cell, statistics["publishers"])
    found = []
    for process in (picows, locust):
        process.stdin.write(json.dumps({"published": published}).encode() + b"\n")
        found.append(await heard(process))
    with urllib.request.urlopen(f"http://{authority}/healthz") as answer:  # noqa: ASYNC210
        hub = json.loads(answer.read())["hub"]
    assert statistics["published"] == 400
    assert expected == 2000
    for told in found:
        wrong = ("lost", "missing", "duplicated", "reordered", "corrupt", "foreign")
        assert [told[name] for name in wrong] == [0] * 6
        assert told["received"] == expected
        latency = HdrHistogram.decode(told["latency_us"].encode())
        assert latency.get_total_count() == expected
    # And with what the hub counted, those included who came and went meanwhile.
    visitors = found[0]["churned"]
    assert visitors["visits"] >= VISITORS
    assert visitors["received"] > 0
    assert hub["delivered"] == 2 * expected + visitors["received"]
    assert (hub["received"], hub["dropped"], hub["abandoned"]) == (400, 0, 0)


async def test_locust_says_what_went_missing_before_a_first_record_and_after_a_last(
    serve, publish, generators
):
    spec = {"url": f"http://{serve()}", "users": 2, "subscriptions": 2, "topics": 2}
    locust = await generators(GENERATORS["Locust"], spec)
    await publish(topics=2, count=10).statistics()
    # As if each of the two topics had had 7 messages, and not 5.
    locust.stdin.write(json.dumps({"published": {"t000000": 7, "t000001": 7}}).encode() + b"\n")
    told = await heard(locust)
    assert (told["received"], told["lost"], told["missing"]) == (20, 0, 8)
