"""Where the load goes: a variant that is started for it, or a server of one's own."""

import http.client
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench import supervise
from bench.campaign import Failed
from bench.errors import BadInput
from bench.provenance import Pinning
from bench.supervise import Deployment
from bench.variants import resolve

REPLY_S = 10.0


@dataclass(frozen=True)
class Site:
    """Something that serves. ``deployment`` is None for a server of one's own."""

    base_url: str
    deployment: Deployment | None = None

    @property
    def pid(self) -> int | None:
        return self.deployment.pid if self.deployment else None

    def log_tail(self) -> str | None:
        return self.deployment.log_tail() if self.deployment else None

    def url(self, path: str, scheme: str) -> str:
        """Return the address of ``path``, which a target that has one of its own overrules."""
        parts = urlsplit(self.base_url)
        own = parts.path if parts.path not in ("", "/") else path
        query = f"?{parts.query}" if parts.query else ""
        return f"{scheme}://{parts.netloc}{own}{query}"


def target(text: str) -> str:
    """Return the address meant by ``text``, a port of this machine or a URL; ``BadInput`` if none.

    Asks whether anybody listens, so that a wrong port is told in one line and at once.
    """
    url = f"http://127.0.0.1:{text}" if text.isdigit() else text
    parts = urlsplit(url)
    if parts.scheme not in ("http", "ws") or not parts.hostname:
        raise BadInput(f"-p {text}: give a port, or an address such as http://127.0.0.1:8000")
    try:
        port = parts.port or 80
        socket.create_connection((parts.hostname, port), timeout=3).close()
    except (OSError, ValueError) as error:
        raise BadInput(f"-p {text}: nobody answers at {url} ({error}); start it first") from error
    return url


@contextmanager
def serving(variant: str | None, own: str | None, pinned: Pinning) -> Iterator[Site]:
    """Run ``variant``, or go to one's ``own`` server; raise ``Failed`` if it does not start."""
    if variant is None:
        assert own is not None
        yield Site(own)
        return
    try:
        with supervise.deployed(resolve(variant), cpus=pinned.server) as deployment:
            yield Site(deployment.base_url, deployment)
    except supervise.StartFailed as failure:
        raise Failed(failure.reason, failure.log_tail) from failure
    except BadInput as missing:  # such as a proxy that is not installed: the other columns are
        raise Failed(str(missing)) from missing


def page(url: str) -> str:
    """Return the body of ``url``, to compare replies with; raise ``Failed`` for any but a 200."""
    try:
        with urllib.request.urlopen(url, timeout=REPLY_S) as reply:  # noqa: S310 - http only
            return str(reply.read().decode())
    except urllib.error.HTTPError as error:
        raise Failed(f"GET {url} answers {error.code}") from error
    except (OSError, http.client.HTTPException, UnicodeDecodeError) as error:
        raise Failed(f"GET {url}: {error}") from error
