"""Clients that account for each of their requests, sockets and messages, against small servers."""

import asyncio
import time
from contextlib import asynccontextmanager, suppress

import pytest
from websockets.asyncio.server import serve as serve_sockets

from bench.faults.connection import Client
from bench.faults.traffic import CLIENTS, SOCKETS, observed, results

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"


@asynccontextmanager
async def serving(*connections):
    """Yield a URL and the requests it was sent. Each connection gets its answers, and is closed."""
    requests, waiting = [], list(connections)

    async def serve(reader, writer):
        # A client that keeps no connection leaves before it has had every answer of this one.
        with suppress(asyncio.IncompleteReadError):
            for answer in waiting.pop(0):
                requests.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


@asynccontextmanager
async def asking(*connections, keeps=True):
    async with serving(*connections) as (url, _):
        client = Client(url, keeps=keeps)
        yield client.ask
        await client.close()


async def test_request_that_finds_its_kept_connection_closed_goes_on_a_new_one():
    async with asking([OK], [OK, OK]) as ask:
        assert await ask() == ("ok", False)
        assert await ask() == ("ok", True)
        assert await ask() == ("ok", False)


async def test_request_is_repeated_once_and_no_more():
    async with asking([OK], [b""]) as ask:
        await ask()
        assert await ask() == ("cut off", True)


async def test_request_on_a_new_connection_is_not_repeated():
    async with asking([b""], keeps=False) as ask:
        assert await ask() == ("cut off", False)


@pytest.mark.parametrize("sent", [OK[:5], OK[:-1]], ids=["head", "body"])
async def test_request_is_not_repeated_when_some_of_its_answer_has_come(sent):
    async with asking([OK, sent]) as ask:
        await ask()
        assert await ask() == ("cut off", False)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\nOK", "ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nNOK", "wrong body"),
        (b"HTTP/1.1 503 Sorry\r\nContent-Length: 0\r\n\r\n", "status 503"),
        (b"SSH-2.0\r\n\r\n", "malformed reply"),
    ],
)
async def test_reply_is_judged_by_its_status_and_body(answer, result):
    async with asking([answer]) as ask:
        assert await ask() == (result, False)


async def test_connection_is_kept_only_by_those_that_keep_it():
    for keeps, header in ((True, b"Connection: keep-alive"), (False, b"Connection: close")):
        async with serving([OK] * 2, [OK]) as (url, requests):
            client = Client(url, keeps=keeps)
            found = [await client.ask() for _ in range(2)]
            await client.close()
            assert found == [("ok", False)] * 2
            assert all(header in request for request in requests)


async def test_half_of_the_clients_keep_their_connections():
    connections = 0

    async def serve(reader, writer):
        nonlocal connections
        connections += 1
        while await reader.readline() and await reader.readuntil(b"\r\n\r\n"):
            writer.write(OK)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        seen, _ = await observed(url, lambda: None, sockets=False, before_s=0.5, after_s=0)
    assert set(results(seen.requests)) == {"ok"}
    kept = CLIENTS // 2
    assert connections == pytest.approx(kept + len(seen.requests) / 2, abs=kept)


async def test_sockets_are_opened_throughout_and_what_befell_each_is_told():
    state = ["well"]

    async def echo(socket):
        async for message in socket:
            if state[-1] == "ending":
                await socket.close(1012)
            else:
                await socket.send(message)

    def gate(connection, _):
        return connection.respond(503, "") if state[-1] == "refusing" else None

    def fault():
        for next_state in ("refusing", "ending"):
            state.append(next_state)
            time.sleep(0.3)

    async with serve_sockets(echo, "127.0.0.1", 0, process_request=gate) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        seen, _ = await observed(url, fault, sockets=True, before_s=0.3, after_s=0)
    assert set(results(seen.handshakes)) == {"ok", "status 503", "open, then closed 1012"}
    assert [socket.ended for socket in seen.sockets] == ["closed 1012"] * SOCKETS
    assert all(socket.sent - socket.returned in (0, 1) for socket in seen.sockets)
