"""The clauses about HTTP: the same status, body and content type on every variant."""

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.readiness import mismatches
from bench.variants import Variant

TIMEOUT_S = 6.0  # above the 5 s after which the relay itself answers 504
_TABLE_CELLS = 6 * 4


@dataclass(frozen=True)
class Reply:
    """An HTTP response, its header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]


def get(base_url: str, path: str) -> Reply:
    """Return the reply to ``GET path``, on a connection of its own."""
    connection = _connection(base_url)
    try:
        return _asked(connection, path)
    finally:
        connection.close()


def _connection(base_url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=TIMEOUT_S)


def _asked(connection: http.client.HTTPConnection, path: str) -> Reply:
    connection.request("GET", path)
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, headers, response.read())


def _differences(path: str, reply: Reply, status: int, content_type: str) -> Iterator[str]:
    if reply.status != status:
        yield f"GET {path} answers {reply.status} instead of {status}: {reply.text[:80]!r}"
    elif reply.content_type != content_type:
        yield f"GET {path} is {reply.content_type or 'of no type'} instead of {content_type}"


def identity(base_url: str, variant: Variant) -> Iterator[str]:
    """/healthz says that the server is the variant."""
    reply = get(base_url, "/healthz")
    yield from _differences("/healthz", reply, 200, "application/json")
    if reply.status == 200:
        yield from (f"/healthz: {difference}" for difference in mismatches(variant, told(reply)))


def told(reply: Reply) -> dict[str, object]:
    """Return the JSON object of ``reply``; an empty one where it is none."""
    try:
        found = json.loads(reply.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def hello(base_url: str, variant: Variant) -> Iterator[str]:
    """The endpoint of 2016, and the same through a Channels consumer."""
    for path in ["/"] + ["/consumer/"] * (variant.interface == "asgi"):
        reply = get(base_url, path)
        yield from _differences(path, reply, 200, "text/plain")
        if reply.status == 200 and reply.body != b"OK":
            yield f"GET {path} answers {reply.text[:80]!r} instead of 'OK'"


def pages(base_url: str, variant: Variant) -> Iterator[str]:
    """The pages that do some work do it."""
    found = {}
    for path in ("/render_name/?name=Grace", "/render_table/", "/render_twice/", "/smoke/"):
        found[path] = get(base_url, path)
        yield from _differences(path, found[path], 200, "text/html")
    table = found["/render_table/"].text
    if "Grace" not in found["/render_name/?name=Grace"].text:
        yield "GET /render_name/?name=Grace does not name Grace"
    if table.count("<td>") != _TABLE_CELLS:
        yield f"GET /render_table/ has {table.count('<td>')} cells instead of {_TABLE_CELLS}"
    if found["/render_twice/"].text != table * 2:
        yield "GET /render_twice/ is not the table twice"


def lookup(base_url: str, variant: Variant) -> Iterator[str]:
    """50,000 lookups, half of them in vain."""
    reply = get(base_url, "/lookup/")
    yield from _differences("/lookup/", reply, 200, "text/plain")
    if reply.status == 200 and reply.body != b"25000":
        yield f"GET /lookup/ answers {reply.text[:80]!r} instead of '25000'"


def head(base_url: str, variant: Variant) -> Iterator[str]:
    """HEAD answers what GET does, without a body: not even one that a client library hides."""
    for path in ["/"] + ["/consumer/"] * (variant.interface == "asgi"):
        raw = _raw(
            base_url, f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        start, _, body = raw.partition(b"\r\n\r\n")
        if not start.startswith(b"HTTP/1.1 200 "):
            yield f"HEAD {path} answers {start[:40]!r}"
        if body:
            yield f"HEAD {path} has a body: {body[:40]!r}"
        if b"content-type: text/plain" not in start.lower():
            yield f"HEAD {path} has not the content type of GET"


def _raw(base_url: str, request: str) -> bytes:
    """Return all that the server sends for ``request`` until it closes the connection."""
    parts = urlsplit(base_url)
    assert parts.hostname, base_url
    with socket.create_connection((parts.hostname, parts.port or 80), timeout=TIMEOUT_S) as client:
        client.sendall(request.encode())
        return b"".join(iter(lambda: client.recv(65536), b""))


def keep_alive(base_url: str, variant: Variant) -> Iterator[str]:
    """Proxies and ASGI servers keep a connection open; gunicorn's sync worker closes it."""
    connection = _connection(base_url)
    try:
        closes = _asked(connection, "/").headers.get("connection", "").lower() == "close"
        wanted = variant.interface == "wsgi" and variant.proxy == "direct"
        if closes != wanted:
            yield f"GET / {'closes' if closes else 'keeps'} its connection"
        elif not closes:
            yield from _differences("/ (again)", _asked(connection, "/"), 200, "text/plain")
    finally:
        connection.close()


def absent(base_url: str, variant: Variant) -> Iterator[str]:
    """An unknown path is 404, and a socket's path without a handshake is 426."""
    for path, status in {"/no/such/path/": 404, "/ws/echo/": 426, "/ws/room/a/": 426}.items():
        found = get(base_url, path).status
        if found != status:
            yield f"GET {path} answers {found} instead of {status}"


def refusals(base_url: str, variant: Variant) -> Iterator[str]:
    """What a variant cannot serve is refused at once, with the reason."""
    without_worker = variant.interface == "asgi" and not variant.has_worker
    wanted = {"/relay/": 503} if without_worker else {}
    if variant.interface == "wsgi":
        wanted = {"/consumer/": 501, "/relay/": 501}
    for path, status in wanted.items():
        reply = get(base_url, path)
        yield from _differences(path, reply, status, "text/plain")
        if len(reply.text.split()) < 3:
            yield f"GET {path} refuses without a reason: {reply.text!r}"


def relay(base_url: str, variant: Variant) -> Iterator[str]:
    """/relay/ runs the same Django view in a worker: another process, over the channel layer."""
    if not variant.has_worker:
        return
    reply = get(base_url, "/relay/")
    yield from _differences("/relay/", reply, 200, "text/plain")
    if reply.status != 200:
        return
    if reply.body != b"OK":
        yield f"GET /relay/ answers {reply.text[:80]!r} instead of 'OK'"
    yield from worker_breaches("GET /relay/", reply.headers, server_pids(base_url, variant))
    answering = _process(base_url, "/relay/healthz")
    if answering in server_processes(base_url):
        yield f"GET /relay/healthz was answered by the server's process {answering}"
    path = "/render_name/?name=Grace"
    if get(base_url, f"/relay{path}").body != get(base_url, path).body:
        yield f"GET /relay{path} differs from GET {path}"


def server_pids(base_url: str, variant: Variant) -> set[object] | None:
    """Return the pids of the server's processes; None where they tell no two processes apart.

    Each container counts its processes from 1.
    """
    if variant.proxy == "swarm":
        return None
    return {pid for _, pid in server_processes(base_url)}


def server_processes(base_url: str, samples: int = 8) -> set[tuple[object, object]]:
    """Return the processes of the server, host and pid, that ``samples`` requests find."""
    return {_process(base_url, "/healthz") for _ in range(samples)}


def _process(base_url: str, path: str) -> tuple[object, object]:
    answer = told(get(base_url, path))
    return answer.get("host"), answer.get("pid")


def worker_breaches(
    what: str, headers: Mapping[str, str], servers: set[object] | None
) -> Iterator[str]:
    """Yield what the headers that name the two processes say wrong; names in lower case."""
    pids = {name: headers.get(name, "") for name in ("x-worker-pid", "x-server-pid")}
    for name, pid in pids.items():
        if not pid.isdecimal():
            yield f"{what} has no pid in {name}: {pid!r}"
    worker, server = pids.values()
    if servers is not None and worker.isdecimal() and (worker == server or int(worker) in servers):
        yield f"{what} was answered by process {worker}, which is the server's"


CLAUSES = (identity, hello, pages, lookup, head, keep_alive, absent, refusals, relay)
