"""A WebSocket server that echoes, and misbehaves as it is told, for the load driver's tests.

    python echo_server.py FAULT EVERY

Prints its port, and exits when its standard input ends. Every EVERY-th message of a socket gets
the FAULT: none, corrupt, swap (with the next one), silent, close, twice. FAULT origin refuses
handshakes without an Origin header, and deny refuses them all.
"""

import asyncio
import http
import sys
import threading
from contextlib import suppress

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed


async def echo(socket: ServerConnection, fault: str, every: int) -> None:
    with suppress(ConnectionClosed):
        await answer(socket, fault, every)


async def answer(socket: ServerConnection, fault: str, every: int) -> None:
    held: str | None = None
    number = 0
    async for message in socket:
        number += 1
        faulty = number % every == 0
        if faulty and fault == "close":
            await socket.close(1011)
        elif faulty and fault == "corrupt":
            await socket.send("x" + message[1:])
        elif faulty and fault == "twice":
            await socket.send(message)
            await socket.send(message)
        elif faulty and fault == "silent":
            continue
        elif faulty and fault == "swap":
            held = message
        else:
            await socket.send(message)
            if held is not None:
                await socket.send(held)
                held = None


async def main(fault: str, every: int) -> None:
    def gate(connection: ServerConnection, request):
        denied = fault == "origin" and "Origin" not in request.headers
        if denied or fault == "deny":
            return connection.respond(http.HTTPStatus.FORBIDDEN, "denied\n")
        return None

    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=wait, daemon=True).start()
    async with serve(
        lambda socket: echo(socket, fault, every), "127.0.0.1", 0, process_request=gate
    ) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)  # noqa: T201
        await over.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
