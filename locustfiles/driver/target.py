"""Where the load goes: ``--host`` and ``--path``, resolved once before the test."""

import errno
import os
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

CONNECT_TIMEOUT_S = 3.0
DEFAULT_PORT = 80
HIGHEST_PORT = 65_535


class BadTarget(ValueError):  # noqa: N818 - it says what is wrong, not that something is
    """There is nothing to send load to; the text names the input and the remedy."""


@dataclass(frozen=True)
class Target:
    """One endpoint. ``address`` is what ``connect`` takes, ``authority`` the Host header."""

    scheme: str
    authority: str
    path: str
    family: int
    address: tuple[str, int]

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parsed(host: str | None, path: str, schemes: tuple[str, ...]) -> tuple[str, str, str, int]:
    """Return scheme, authority, host name and port. Pure. Raises ``BadTarget``."""
    example = f"{schemes[0]}://127.0.0.1:8000"
    if not host:
        raise BadTarget(f"no host: name one, such as --host {example}")
    parts = urlsplit(host)
    if parts.scheme not in schemes:
        raise BadTarget(f"--host {host}: the address must start with {' or '.join(schemes)}://")
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise BadTarget(f"--host {host}: the port must be 1 to {HIGHEST_PORT}") from None
    if not parts.hostname:
        raise BadTarget(f"--host {host}: no host name in it; write it as {example}")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise BadTarget(f"--host {host}: give the path by itself, as --path {parts.path}")
    if not path.startswith("/") or not path.isascii() or any(c.isspace() for c in path):
        raise BadTarget(f"--path {path!r}: a path starts with / and has no spaces")
    return parts.scheme, parts.netloc, parts.hostname, port


def resolve(host: str | None, path: str, schemes: tuple[str, ...] = ("http",)) -> Target:
    """Return the endpoint, at the first of its addresses that takes a connection.

    Raises ``BadTarget`` where none does. Under gevent only the calling greenlet waits.
    """
    scheme, authority, name, port = parsed(host, path, schemes)
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise BadTarget(f"--host {host}: cannot find {name} ({_reason(error)})") from error
    refusal: OSError | None = None
    for family, _, _, _, address in found:
        try:
            socket.create_connection(address[:2], timeout=CONNECT_TIMEOUT_S).close()
        except OSError as error:
            refusal = error
        else:
            return Target(scheme, authority, path, family, address)
    assert refusal is not None  # getaddrinfo raises rather than return nothing
    raise BadTarget(
        f"--host {host}: nothing answers there ({_reason(refusal)}); start the server first"
    ) from refusal


def _reason(error: OSError) -> str:
    if error.errno in errno.errorcode:
        return os.strerror(error.errno)
    return error.strerror or str(error)
