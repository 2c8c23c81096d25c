"""The processes around the server: the generator and the publisher."""

import http.client
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from bench import supervise
from bench.environment import ROOT
from bench.fanout.cells import GENERATORS, Cell
from bench.fanout.spec import Spec
from bench.processes import descendants, read
from bench.provenance import Pinning
from bench.supervise import Deployment

READY_S = 120.0  # for all users to connect and subscribe
AFTER_S = 30.0  # from the feed's end to the generator's report
LOG_LINES = 12


class CellFailed(Exception):  # noqa: N818 - it says what happened
    """A cell could not be measured."""


def spec(cell: Cell, url: str) -> Spec:
    return Spec(
        url=url,
        transport=cell.transport,
        users=cell.users,
        topics=cell.topics,
        subscriptions=cell.subscriptions,
        message_bytes=cell.message_bytes,
        churning=cell.churning,
    )


class Line:
    """A process of ours that is spoken with in lines of JSON."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def say(self, value: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value).encode() + b"\n")
        self._process.stdin.flush()

    def heard(self, patience_s: float) -> dict[str, Any]:
        """Return its next line; raise ``CellFailed`` where none comes in time."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], patience_s)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            raise CellFailed(f"the generator says nothing in {patience_s:g} s{self._errors()}")
        return dict(json.loads(line))

    def _errors(self) -> str:
        assert self._process.stderr is not None
        self._process.kill()
        tail = self._process.stderr.read().decode(errors="replace").splitlines()[-LOG_LINES:]
        return ": " + "\n".join(tail) if tail else ""


def pinned_to(cpus: Sequence[int] | None) -> list[str]:
    return ["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []


@contextmanager
def generating(cell: Cell, pinned: Pinning, deployment: Deployment) -> Iterator[Line]:
    """Run the generator for the length of the block."""
    asked = spec(cell, deployment.base_url).to_json()
    command = [sys.executable, "-m", GENERATORS[cell.generator], asked]
    process = subprocess.Popen(
        [*pinned_to(pinned.generator), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        yield Line(process)
    finally:
        process.kill()
        process.communicate()


def published(cell: Cell, pinned: Pinning, deployment: Deployment) -> dict[str, Any]:
    """Publish the feed of ``cell``, and return the publishers' statistics when it has ended."""
    if not cell.subscriptions:
        time.sleep(cell.seconds)
        return {"published": 0, "seconds": cell.seconds, "publishers": []}
    feed = {
        "topics": cell.topics,
        "rate": cell.rate,
        "message_bytes": cell.message_bytes,
        "publishers": cell.publishers,
        "seconds": cell.seconds,
    }
    if cell.variant.layer == "inmemory":
        return through_the_server(feed, deployment)
    options = [
        part
        for name, value in feed.items()
        if value is not None
        for part in (f"--{name.replace('_', '-')}", f"{value}")
    ]
    done = subprocess.run(
        [*pinned_to(pinned.generator), sys.executable, "manage.py", "publish", *options],
        cwd=ROOT,
        env=supervise.process_environment(cell.variant, os.environ),
        capture_output=True,
        timeout=cell.seconds + AFTER_S,
        check=False,
    )
    if done.returncode:
        tail = done.stderr.decode(errors="replace").splitlines()[-LOG_LINES:]
        raise CellFailed("manage.py publish failed: " + "\n".join(tail))
    return dict(json.loads(done.stdout))


def through_the_server(feed: Mapping[str, Any], deployment: Deployment) -> dict[str, Any]:
    status, body = asked(deployment, "POST", "/publish/", json.dumps(feed), feed["seconds"])
    if status != 200:
        raise CellFailed(f"/publish/ answers {status}: {body.decode(errors='replace')}")
    return dict(json.loads(body))


def hub_counters(deployment: Deployment) -> dict[str, int | None] | None:
    """Return what the hub of a server process has counted; None where it has none."""
    _, body = asked(deployment, "GET", "/healthz", None, 0.0)
    found = json.loads(body)["hub"]
    return dict(found) if found else None


def asked(
    deployment: Deployment, method: str, path: str, body: str | None, longest_s: float
) -> tuple[int, bytes]:
    parts = urlsplit(deployment.base_url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=longest_s + AFTER_S)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        raise CellFailed(f"{method} {path}: {error or type(error).__name__}") from error
    finally:
        connection.close()


def servers_rss(deployment: Deployment) -> int:
    """Return the resident memory of everything that supervisord started."""
    processes = read()
    below = descendants(processes, [deployment.pid]) - {deployment.pid}
    return sum(processes[pid].rss_bytes for pid in below)
