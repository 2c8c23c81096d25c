"""A client's requests, on a connection that it keeps or a new one each, and what came of them."""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

import httptools

TIMEOUT_S = 10.0  # above it a request counts as hung
OK = "ok"
_CHUNK_BYTES = 65536


class Stale(ConnectionError):  # noqa: N818
    """A connection that was kept had ended before any byte of an answer came."""


class Reply:
    """The answer to one request, as httptools reads it."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.body = b""
        self.has_begun = self.is_whole = self.may_be_kept = False
        self._ends_with_connection = False
        self._has_length = False

    def feed(self, data: bytes) -> None:
        """Take what came; nothing is the end of the connection.

        Raises ``ConnectionError`` where that cuts the reply off, and ``HttpParserError``.
        """
        if data:
            self.has_begun = True
            self.parser.feed_data(data)
        elif self._ends_with_connection:
            self.is_whole = True
        else:
            raise ConnectionResetError("it ended before the reply did")

    @property
    def result(self) -> str:
        """What a person would call it: OK, or how it fails to be the answer of ``/``."""
        status = self.parser.get_status_code()
        if status != 200:
            return f"status {status}"
        return OK if self.body == b"OK" else "wrong body"

    # What httptools calls.

    def on_header(self, name: bytes, _: bytes) -> None:
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._has_length = True

    def on_headers_complete(self) -> None:
        self._ends_with_connection = not self._has_length

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.is_whole = True
        # Only here: llhttp forgets it with the message.
        self.may_be_kept = self.parser.should_keep_alive()


class Client:
    """Sends ``GET /``, one after the other."""

    def __init__(self, base_url: str, *, keeps: bool) -> None:
        parts = urlsplit(base_url)
        assert parts.hostname, base_url
        self._address = parts.hostname, parts.port or 80
        self._keeps = keeps
        self._kept: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        connection = "keep-alive" if keeps else "close"
        head = f"GET / HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: {connection}"
        self._request = f"{head}\r\n\r\n".encode()

    async def ask(self) -> tuple[str, bool]:
        """Return what came of a request, and whether it was sent once more.

        The other side may end a connection that is kept at any time. A request that finds it ended
        before any byte of an answer goes on a new one, once, as RFC 9110 (9.2.2) allows for a GET
        and browsers do.
        """
        repeated = False
        try:
            async with asyncio.timeout(TIMEOUT_S):
                try:
                    reply = await self._exchange()
                except Stale:
                    repeated = True
                    reply = await self._exchange()
        except TimeoutError:
            return "hung", repeated
        except ConnectionRefusedError:
            return "refused", repeated
        except OSError:
            return "cut off", repeated
        except httptools.HttpParserError:
            return "malformed reply", repeated
        return reply.result, repeated

    async def close(self) -> None:
        if self._kept is not None:
            await _close(self._kept[1])

    async def _exchange(self) -> Reply:
        kept, self._kept = self._kept, None
        reader, writer = kept or await asyncio.open_connection(*self._address)
        reply = Reply()
        try:
            writer.write(self._request)
            while not reply.is_whole:
                reply.feed(await reader.read(_CHUNK_BYTES))
        except ConnectionError as error:
            if kept and not reply.has_begun:
                raise Stale from error
            raise
        finally:
            if self._keeps and reply.may_be_kept:
                self._kept = reader, writer
            else:
                await _close(writer)
        return reply


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
