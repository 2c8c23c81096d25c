"""A hub on the Redis layers, beside ordinary consumers of the same process."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from channels_hub import Hub, Outbox
from channels_hub.publisher import Publisher

pytestmark = pytest.mark.redis
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(params=[RedisChannelLayer, RedisPubSubChannelLayer], ids=["core", "pubsub"])
async def layer(request, redis_url):
    layer = request.param(hosts=[{"address": redis_url, "socket_timeout": None}])
    yield layer
    await layer.flush()


async def test_hub_is_not_starved_by_a_consumer_that_waits_in_the_same_process(layer, take):
    waiting = asyncio.create_task(layer.receive(await layer.new_channel()))
    await asyncio.sleep(0.1)
    hub, outbox = Hub(layer), Outbox()
    await hub.start()
    publisher = Publisher(layer, window=8)
    try:
        await hub.subscribe(outbox, ["a"])
        await publisher.start()
        assert list(publisher.hubs) == [hub.channel]
        for _ in range(50):
            await publisher.publish("a", b"x")
        assert len(await take(outbox, 50)) == 50
        await publisher.close()
        assert publisher.given_up == 0
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await hub.close()


async def test_feed_as_fast_as_possible_is_lost_nowhere_on_the_layer_of_the_hubs(
    redis_url, take, tmp_path
):
    """The command's own layer decides when a channel of Redis is full."""
    layer = RedisChannelLayer(hosts=[{"address": redis_url, "socket_timeout": None}], capacity=8192)
    hub, outbox = Hub(layer), Outbox()
    await hub.start()
    await hub.subscribe(outbox, [f"t{number:06d}" for number in range(8)])
    environment = os.environ | {
        "REDIS_URL": redis_url,
        "DJANGO_SETTINGS_MODULE": "settings.channels_redis",
        "TESTPROJECT_DELIVERY": "hub",
    }
    feed = await asyncio.create_subprocess_exec(
        *(sys.executable, "manage.py", "publish", "--topics=8", "--publishers=4", "--count=1500"),
        env=environment,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await feed.communicate()
    taken = await take(outbox, 1_500)
    await hub.close()
    await layer.flush()
    assert json.loads(out)["published"] == 1_500
    assert len(taken) == 1_500
