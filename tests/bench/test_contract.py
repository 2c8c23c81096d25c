"""The endpoint contract finds what is broken: small servers that keep it, and break one thing."""

import json
import os
import re
import socket
import threading
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response
from websockets.sync.server import serve

from bench.contract import replies, sockets, violations
from bench.variants import LAYERS, resolve

TABLE = "<table>" + "<td>1</td>" * 24 + "</table>"
WORKER_PID = os.getpid() + 1


def page(body, content_type="text/html", status=200, **headers):
    return status, {"Content-Type": content_type} | headers, body.encode()


def correct(variant):
    """Return path -> (status, headers, body) as the contract wants it from ``variant``."""
    hello = page("OK", "text/plain")
    reason = page("This server speaks WSGI.", "text/plain", 501)
    told = {
        "server": variant.server,
        "interface": variant.interface,
        "layer": variant.layer,
        "middleware": variant.middleware,
        "settings": LAYERS[variant.layer].settings,
        "pid": os.getpid(),
    }
    pids = {"X-Worker-Pid": str(WORKER_PID), "X-Server-Pid": str(os.getpid())}
    shared = {
        "/": hello,
        "/healthz": page(json.dumps(told), "application/json"),
        "/render_name/": page("Hello, Grace!"),
        "/render_table/": page(TABLE),
        "/render_twice/": page(TABLE * 2),
        "/smoke/": page("look"),
        "/lookup/": page("25000", "text/plain"),
        "/ws/echo/": page("", "text/plain", 426),
        "/ws/room/a/": page("", "text/plain", 426),
    }
    if variant.interface == "wsgi":
        return shared | {"/consumer/": reason, "/relay/": reason, "/poll/": reason}
    relayed = {
        "/relay/healthz": page(json.dumps({"pid": WORKER_PID}), "application/json"),
        "/relay/render_name/": page("Hello, Grace!"),
        "/relay/": page("OK", "text/plain", **pids),
    }
    none = {"/relay/": page("No worker can be reached.", "text/plain", 503)}
    return shared | {"/consumer/": hello} | (relayed if variant.has_worker else none)


class Fake(BaseHTTPRequestHandler):
    """Answers as its server's ``pages`` say; it refuses sockets."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(with_body=True)

    def do_HEAD(self):
        self.answer(with_body=self.server.head_has_body)

    def answer(self, with_body):
        absent = page("", "text/plain", 404)
        status, headers, body = self.server.pages.get(self.path.partition("?")[0], absent)
        if self.headers.get("Upgrade"):
            status = 501
        self.send_response(status)
        closes = {"Connection": "close"} if self.server.closes else {}
        for name, value in ({"Content-Length": str(len(body))} | closes | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextmanager
def faked(variant, *, closes=None, head_has_body=False, **broken):
    """Run a server that keeps the HTTP clauses as ``variant``, but for what is ``broken``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    server.daemon_threads = True
    server.pages = correct(variant) | broken
    server.closes = variant.interface == "wsgi" if closes is None else closes
    server.head_has_body = head_has_body
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def http_breaches(url, variant):
    return [breach for clause in replies.CLAUSES for breach in clause(url, variant)]


def test_contract_finds_nothing_where_all_of_it_is_kept():
    variant = resolve("gunicorn")
    with faked(variant) as url:
        assert violations(url, variant) == []


@pytest.mark.parametrize("name", ["uvicorn-ipc", "daphne-inmemory"])
def test_http_clauses_find_nothing_where_they_are_kept(name):
    with faked(resolve(name)) as url:
        assert http_breaches(url, resolve(name)) == []


WRONG_RELAY = {"X-Worker-Pid": str(os.getpid()), "X-Server-Pid": str(os.getpid())}


@pytest.mark.parametrize(
    ("name", "broken", "breach"),
    [
        ("gunicorn", {"/": page("KO", "text/plain")}, "answers 'KO' instead of 'OK'"),
        ("gunicorn", {"/": page("OK")}, "is text/html instead of text/plain"),
        ("gunicorn", {"/": page("no", "text/plain", 500)}, "GET / answers 500 instead of 200"),
        ("gunicorn", {"/healthz": page("{}", "application/json")}, "server is None and should be"),
        ("gunicorn", {"/healthz": page("[", "application/json")}, "layer is None and should be"),
        ("gunicorn", {"/render_name/": page("Hello!")}, "does not name Grace"),
        ("gunicorn", {"/render_table/": page("<td>")}, "1 cells instead of 24"),
        ("gunicorn", {"/render_twice/": page(TABLE)}, "is not the table twice"),
        ("gunicorn", {"/smoke/": page("", status=404)}, "GET /smoke/ answers 404"),
        ("gunicorn", {"/lookup/": page("1", "text/plain")}, "instead of '25000'"),
        ("gunicorn", {"/no/such/path/": page("")}, "answers 200 instead of 404"),
        ("gunicorn", {"/ws/echo/": page("")}, "GET /ws/echo/ answers 200 instead of 426"),
        ("gunicorn", {"/relay/": page("", "text/plain", 501)}, "refuses without a reason"),
        ("gunicorn", {"/consumer/": page("OK", "text/plain")}, "answers 200 instead of 501"),
        ("uvicorn-ipc", {"/consumer/": page("no", "text/plain")}, "instead of 'OK'"),
        ("uvicorn-ipc", {"/relay/": page("", "text/plain", 504)}, "answers 504 instead of 200"),
        ("uvicorn-ipc", {"/relay/": page("OK", "text/plain")}, "has no pid in x-worker-pid"),
        (
            "uvicorn-ipc",
            {"/relay/": page("OK", "text/plain", **WRONG_RELAY)},
            "which is the server's",
        ),
        (
            "uvicorn-ipc",
            {"/relay/healthz": page(json.dumps({"pid": os.getpid()}), "application/json")},
            "was answered by the server's process",
        ),
        ("uvicorn-ipc", {"/relay/render_name/": page("Hello!")}, "differs from GET"),
        ("daphne-inmemory", {"/relay/": page("OK", "text/plain")}, "answers 200 instead of 503"),
    ],
)
def test_http_clause_names_what_is_broken(name, broken, breach):
    with faked(resolve(name), **broken) as url:
        assert any(breach in found for found in http_breaches(url, resolve(name)))


def test_head_clause_sees_a_body_that_client_libraries_hide():
    variant = resolve("gunicorn")
    with faked(variant, head_has_body=True) as url:
        assert list(replies.head(url, variant)) == ["HEAD / has a body: b'OK'"]


@pytest.mark.parametrize(("name", "does"), [("gunicorn", "keeps"), ("uvicorn-ipc", "closes")])
def test_keep_alive_clause_sees_the_other_policy(name, does):
    with faked(resolve(name), closes=does == "closes") as url:
        assert list(replies.keep_alive(url, resolve(name))) == [f"GET / {does} its connection"]


def test_contract_reports_a_server_that_is_not_there(free_port):
    found = violations(f"http://127.0.0.1:{free_port}", resolve("gunicorn"))
    assert len(found) >= len(replies.CLAUSES)
    assert all("ConnectionRefusedError" in breach or "refused" in breach for breach in found)


def test_contract_reports_a_server_that_hangs_up():
    listener = socket.create_server(("127.0.0.1", 0))
    hangs_up = threading.Thread(target=hang_up, args=(listener,))
    hangs_up.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    assert violations(url, resolve("gunicorn"))
    listener.shutdown(socket.SHUT_RDWR)
    hangs_up.join()
    listener.close()


def hang_up(listener):
    while True:
        try:
            listener.accept()[0].close()
        except OSError:
            return


# Sockets ------------------------------------------------------------------------------------


def echo(connection):
    for message in connection:
        connection.send(message)


def to_all(rooms, connection, times=1):
    room = rooms.setdefault(connection.request.path, [])
    room.append(connection)
    for message in connection:
        for member in room * times:
            member.send(message)


@contextmanager
def sockets_served(handler, *, origins=True, known=True, pids=True, worker_pid=WORKER_PID):
    """Serve WebSockets by ``handler``; without ``origins``, ``known`` paths or ``pids`` wrongly."""

    def process_request(connection, request):
        allowed = request.headers.get("Origin") == f"http://{request.headers['Host']}"
        if request.path == "/healthz":
            body = json.dumps({"pid": os.getpid()}).encode()
            return Response(HTTPStatus.OK, "OK", Headers({"Content-Length": str(len(body))}), body)
        if (origins and not allowed) or (known and "/such/" in request.path):
            return connection.respond(HTTPStatus.FORBIDDEN, "no\n")
        return None

    def process_response(connection, request, response):
        if pids:
            response.headers["X-Server-Pid"] = str(os.getpid())
            response.headers["X-Worker-Pid"] = str(WORKER_PID)

    def forgiving(connection):
        try:
            if pids and connection.request.path.endswith("?pids"):
                connection.send(json.dumps({"server_pid": os.getpid(), "worker_pid": worker_pid}))
            handler(connection)
        except ConnectionClosed:
            return

    options = {"process_request": process_request, "process_response": process_response}
    with serve(forgiving, "127.0.0.1", 0, max_size=None, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(sockets, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(sockets, "CLOSE_S", 0.2)


UVICORN = resolve("uvicorn-ipc")


def test_socket_clauses_find_nothing_where_they_are_kept():
    rooms = {}
    with sockets_served(
        lambda one: to_all(rooms, one) if "room" in one.request.path else echo(one)
    ) as url:
        found = [breach for clause in sockets.CLAUSES for breach in clause(url, UVICORN)]
    assert found == []


@pytest.mark.parametrize(
    ("options", "breach"),
    [({"origins": False}, "with a foreign origin: /ws/echo/ opened"),
     ({"origins": False}, "without an origin: /ws/echo/ opened"),
     ({"known": False}, "on an unknown path: /ws/no/such/ opened")],
)  # fmt: skip
def test_refused_clause_names_who_was_let_in(options, breach):
    with sockets_served(echo, **options) as url:
        assert breach in list(sockets.refused(url, UVICORN))


def test_refused_clause_expects_wsgi_and_a_layer_without_a_worker_to_refuse():
    with sockets_served(echo) as url:
        assert "over WSGI: /ws/echo/ opened" in list(sockets.refused(url, resolve("gunicorn")))
        found = list(sockets.refused(url, resolve("daphne-inmemory")))
    assert found == ["without a worker: /ws/relay/ opened"]


def other_type(connection):
    for message in connection:
        connection.send(message.encode() if isinstance(message, str) else message)


def shortened(connection):
    for message in connection:
        connection.send(message[: 64 * 1024])


def silent(connection):
    for _ in connection:
        pass


def reordering(connection):
    for message in connection:
        if message == "0":
            connection.send("1")
        elif message == "1":
            connection.send("0")
        else:
            connection.send(message)


@pytest.mark.parametrize(
    ("handler", "breach"),
    [
        (other_type, "gives back bytes of length 4 .* for str of length 4"),
        (shortened, "gives back str of length 65536 .* for str of length 1048576"),
        (silent, "does not give back str of length 4"),
        (reordering, "does not keep the order"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.parametrize("clause", [sockets.echo, sockets.relayed_echo])
def test_echo_clauses_name_what_is_broken(clause, handler, breach):
    with sockets_served(handler) as url:
        assert any(re.search(breach, found) for found in clause(url, UVICORN))


def test_echo_clauses_want_the_processes_named():
    with sockets_served(echo, pids=False) as url:
        assert list(sockets.echo(url, UVICORN)) == [
            "/ws/echo/ does not name its process in X-Server-Pid"
        ]
        assert len(list(sockets.relayed_echo(url, UVICORN))) == 2


@pytest.mark.parametrize("name", ["uvicorn-ipc", "daphne-ipc", "granian-ipc"])
def test_relayed_echo_is_not_answered_by_the_server_itself(name):
    with sockets_served(echo, worker_pid=os.getpid()) as url:
        found = list(sockets.relayed_echo(url, resolve(name)))
    assert f"/ws/relay/ was answered by process {os.getpid()}, which is the server's" in found


def one_room_for_all(rooms):
    everybody = {}
    return lambda connection: to_all(
        {connection.request.path: everybody.setdefault("", [])}, connection
    )


@pytest.mark.parametrize(
    ("handler_of", "breach"),
    [
        (lambda rooms: echo, "in a room heard"),
        (lambda rooms: silent, r"in a room heard \[\] of"),
        (lambda rooms: lambda one: to_all(rooms, one, times=2), "in a room heard"),
        (one_room_for_all, "heard what was not for it"),
    ],
    ids=["only the speaker hears", "nobody hears", "everybody hears twice", "other rooms hear"],
)
def test_room_clause_names_what_is_broken(handler_of, breach):
    with sockets_served(handler_of({})) as url:
        assert any(re.search(breach, found) for found in sockets.room(url, UVICORN))


def test_room_clause_wants_members_in_several_processes(monkeypatch):
    monkeypatch.setattr(sockets, "_MEMBERS_MAX", 4)
    rooms = {}
    with sockets_served(lambda one: to_all(rooms, one)) as url:
        (breach,) = sockets.room(url, resolve("uvicorn-ipc-x4"))
    assert breach.startswith("4 members of a room are all in process")
