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
        Peer("ipc_again", "channels_ipc, again", "channels_ipc.IPCChannelLayer"),
        Peer("redis", "Redis core, unix socket", _CORE, "unix"),
        Peer("redis_tcp", "Redis core, TCP", _CORE, "tcp"),
        Peer("redis_pubsub", "Redis pub/sub, unix socket", _PUBSUB, "unix"),
        Peer("redis_pubsub_tcp", "Redis pub/sub, TCP", _PUBSUB, "tcp"),
        Peer("inmemory", "in-memory, one process", _INMEMORY, crosses_processes=False),
        Peer("raw", "a pair of FIFOs, no layer", None),
        Peer("asgi_ipc", "asgi_ipc 1.4.2, Channels 1", None),
    )
}
AGAIN = "ipc_again"  # measured twice in a round: what two equal things differ by
CHANNELS_4 = tuple(name for name, peer in PEERS.items() if peer.backend and name != AGAIN)
ON_A_SOCKET = ("ipc", "redis", "redis_pubsub")  # Redis by the faster way to it


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
        return {"directory": str(places.ipc_directory)} if peer.name in ("ipc", AGAIN) else {}
    address = (
        f"unix://{places.redis_socket}"
        if peer.transport == "unix"
        else f"redis://127.0.0.1:{places.redis_port}"
    )
    # redis-py 8 ends an idle read after 5 s unless it is told not to.
    return {"hosts": [{"address": address, "socket_timeout": None}]}
