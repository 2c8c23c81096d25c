"""A hub on the Redis layers, beside ordinary consumers of the same process."""

import asyncio

import pytest
from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from channels_hub import Hub, Outbox
from channels_hub.publisher import Publisher

pytestmark = pytest.mark.redis


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
