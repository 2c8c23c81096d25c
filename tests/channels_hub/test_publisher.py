"""Publishers as fast as they can, at a hub that has a turn only when all of them wait."""

import asyncio

import pytest

from channels_hub import Hub, Outbox
from channels_hub.publisher import Publisher
from channels_hub.records import HEADER
from channels_ipc import IPCChannelLayer


@pytest.fixture
async def ipc_layers(tmp_path):
    """Two layers are two ends, as in two processes."""
    layers = [IPCChannelLayer(directory=str(tmp_path / "ipc"), capacity=8_192) for _ in range(2)]
    yield layers
    for layer in layers:
        await layer.close()


async def publish(publisher, topic, records, message_bytes):
    await publisher.start()
    body = b"x" * (message_bytes - HEADER.size - len(topic))
    for _ in range(records):
        await publisher.publish(topic, body)
    await publisher.close()


# A message of a little more than half a page of the pipe has the page to itself: nothing is worse.
@pytest.mark.parametrize("message_bytes", [1_024, 2_000, 3_500])
@pytest.mark.parametrize(
    ("publishers", "told"), [(1, {"publishers": 1}), (4, {}), (64, {"publishers": 64})]
)
async def test_nothing_is_dropped_however_large_the_messages_and_however_many_publish(
    ipc_layers, publishers, told, message_bytes
):
    (layer, hub_layer), outbox, records = ipc_layers, Outbox(), 1_200 // publishers
    hub = Hub(hub_layer)
    await hub.start()
    topics = [f"t{number}" for number in range(publishers)]
    await hub.subscribe(outbox, topics)
    feeds = [Publisher(layer, **told) for _ in topics]
    await asyncio.gather(
        *(
            publish(feed, topic, records, message_bytes)
            for feed, topic in zip(feeds, topics, strict=True)
        )
    )
    await hub.close()
    assert hub.received == records * publishers
    assert layer.dropped.count == 0
    assert [feed.given_up for feed in feeds] == [0] * publishers
