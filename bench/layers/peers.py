"""What is compared, in its best documented configuration with its known faults mended."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import unknown


@dataclass(frozen=True)
class Peer:
    """A layer and the way to it. ``transport`` is ``None`` where no server stands between."""

    name: str
    title: str
    backend: str | None  # None: it is no Channels 4 layer
    transport: str | None = None  # unix, tcp
    crosses_processes: bool = True


_CORE = "channels_redis.core.RedisChannelLayer"
_PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
_INMEMORY = "channels.layers.InMemoryChannelLayer"

PEERS = {
    peer.name: peer
    for peer in (
        Peer("ipc", "channels_ipc", "channels_ipc.IPCChannelLayer"),
        Peer("redis", "Redis core, unix socket", _CORE, "unix"),
        Peer("redis_tcp", "Redis core, TCP", _CORE, "tcp"),
        Peer("redis_pubsub", "Redis pub/sub, unix socket", _PUBSUB, "unix"),
        Peer("redis_pubsub_tcp", "Redis pub/sub, TCP", _PUBSUB, "tcp"),
        Peer("inmemory", "in-memory, one process", _INMEMORY, crosses_processes=False),
        Peer("raw", "a pair of FIFOs, no layer", None),
        Peer("asgi_ipc", "asgi_ipc 1.4.2, Channels 1", None),
    )
}
CHANNELS_4 = tuple(name for name, peer in PEERS.items() if peer.backend)
ACROSS = tuple(name for name in CHANNELS_4 if PEERS[name].crosses_processes)


def resolve(name: str) -> Peer:
    """Return the peer called ``name``; raise ``BadInput`` that names the nearest ones."""
    if name not in PEERS:
        raise unknown("layer", name, PEERS)
    return PEERS[name]


@dataclass(frozen=True)
class Places:
    """Where a run keeps what is its own."""

    ipc_directory: Path
    redis_socket: Path
    redis_port: int


def config(peer: Peer, places: Places) -> dict[str, Any]:
    """Return the CONFIG of ``peer``, without what a measure adds to it."""
    if peer.transport is None:
        return {"directory": str(places.ipc_directory)} if peer.name == "ipc" else {}
    address = (
        f"unix://{places.redis_socket}"
        if peer.transport == "unix"
        else f"redis://127.0.0.1:{places.redis_port}"
    )
    # redis-py 8 ends an idle read after 5 s unless it is told not to.
    return {"hosts": [{"address": address, "socket_timeout": None}]}
