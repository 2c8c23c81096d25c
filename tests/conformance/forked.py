"""A server that uses its layer, forks, and goes on in both processes (``gunicorn --preload``).

``python forked.py BACKEND CONFIG`` prints, as Python literals, what parent and child received
after each sent ``MESSAGES`` messages to the other. A program of its own, because a fork of the
test's process would fork the test.
"""

import asyncio
import os
import sys
from ast import literal_eval
from typing import Any

from django.utils.module_loading import import_string
from participant import close

MESSAGES = 10
WAIT_S = 1.2


async def use(layer: Any) -> None:
    """Have the layer open whatever it opens."""
    channel = await layer.new_channel()
    receiving = asyncio.create_task(layer.receive(channel))
    await layer.send(channel, {"type": "before.fork"})
    await receiving
    await close(layer) if hasattr(layer, "close_pools") else None


async def exchange(layer: Any, me: str, incoming: int, outgoing: int) -> list[str]:
    """Swap channel names with the other process, send to it, and return what came from it."""
    mine = await layer.new_channel()
    os.write(outgoing, f"{mine}\n".encode())
    other = os.read(incoming, 200).decode().strip()
    for number in range(MESSAGES):
        await layer.send(other, {"type": "after.fork", "text": f"{me} {number}"})
    received = []
    try:
        while len(received) < MESSAGES:
            message = await asyncio.wait_for(layer.receive(mine), WAIT_S)
            received.append(message["text"])
    except TimeoutError:
        pass
    await close(layer)
    return received


def main() -> None:
    backend, config = sys.argv[1], literal_eval(sys.argv[2])
    layer = import_string(backend)(**config)
    asyncio.run(use(layer))
    to_child, to_parent = os.pipe(), os.pipe()
    if os.fork() == 0:
        received = asyncio.run(exchange(layer, "child", to_child[0], to_parent[1]))
        os.write(to_parent[1], f"{received!r}\n".encode())
        os._exit(0)
    received = asyncio.run(exchange(layer, "parent", to_parent[0], to_child[1]))
    from_child = literal_eval(os.read(to_parent[0], 10_000).decode())
    os.wait()
    sys.stdout.write(f"{(received, from_child)!r}\n")


if __name__ == "__main__":
    main()
