import asyncio
import contextlib

import pytest
from channels.layers import InMemoryChannelLayer

from channels_hub import Hub, Outbox
from channels_hub.polling import PollSessions
from channels_hub.publisher import Publisher


@pytest.fixture
def layer():
    return InMemoryChannelLayer(capacity=10_000)


@pytest.fixture
async def hub(layer):
    hub = Hub(layer)
    await hub.start()
    yield hub
    if not hub.closed:
        await hub.close()


@pytest.fixture
async def other_hub(layer):
    hub = Hub(layer)
    await hub.start()
    yield hub
    await hub.close()


@pytest.fixture
def sessions(hub):
    return PollSessions.of(hub)


@pytest.fixture
def elsewhere(other_hub):
    """Return the sessions of another process."""
    return PollSessions.of(other_hub)


@pytest.fixture
def publisher(layer):
    return Publisher(layer, window=0)


@pytest.fixture
def take():
    """Return a function that takes all that is due to an outbox, or nothing after a moment."""

    async def take(outbox: Outbox, records: int) -> list[bytes]:
        taken: list[bytes] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0 if records else 0.05):
                while len(taken) < records or not records:
                    taken += await outbox.batch()
        return taken

    return take
