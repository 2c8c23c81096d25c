"""nginx, haproxy and Apache, all in front of the same four processes of Daphne.

The idle sockets are opened first and looked at last: everything else happens while they wait.
"""

import hashlib
import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from bench import proxies
from bench.environment import KEEP_ALIVE_S, MESSAGE_BYTES
from bench.proxies import BODY_BYTES, PROXIES, REQUEST_S, SILENCE_S
from bench.variants import Variant

PATIENCE_S = 30.0
IDLE_S = 90.0
MEGABYTE = 1024 * 1024
# A client's own idea of where it comes from, in every spelling that a server may take for another.
LIES = {
    "X-Forwarded-For": "203.0.113.7",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Port": "1",
    "X-Forwarded-Host": "elsewhere.example",
    "X-Forwarded-Protocol": "ssl",
    "X-Forwarded-Server": "elsewhere.example",
    "X-Forwarded-Ssl": "on",
    "X-Real-IP": "203.0.113.8",
    "Forwarded": "for=203.0.113.9;proto=https",
    "X_Forwarded_For": "203.0.113.10",
    "X_Forwarded_Proto": "https",
    "SCRIPT_NAME": "/healthz",
    "PATH_INFO": "/elsewhere",
}
KEY = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
each_proxy = pytest.mark.parametrize("proxy", PROXIES.values(), ids=PROXIES)


def assert_passes_its_servers_own_check(proxy, text, folder):
    (folder / proxy.file).write_text(text)
    environ = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
    checked = subprocess.run(
        proxy.check, cwd=folder, env=environ, capture_output=True, text=True, timeout=20
    )
    assert checked.returncode == 0, checked.stderr
    assert checked.stderr.strip() in ("", "Syntax OK")


@each_proxy
@pytest.mark.parametrize("as_root", [False, True] if os.geteuid() == 0 else [False])
def test_configuration_passes_its_servers_own_check(proxy, as_root, tmp_path, installed):
    installed(Variant("gunicorn", proxy=proxy.name))
    text = proxies.rendered(proxy, 18008, (18010, 18011), as_root=as_root)
    assert_passes_its_servers_own_check(proxy, text, tmp_path)


@each_proxy
def test_word_in_the_document_that_takes_a_process_out_passes_the_check(
    proxy, tmp_path, installed, taken_out
):
    installed(Variant("gunicorn", proxy=proxy.name))
    text = proxies.rendered(proxy, 18008, (18010, 18011))
    assert_passes_its_servers_own_check(proxy, taken_out(proxy, text, 18010), tmp_path)


@each_proxy
def test_configuration_knows_every_process_and_nothing_of_this_machine(proxy):
    text = proxies.rendered(proxy, 18008, (18010, 18011))
    assert all(f"127.0.0.1:{port}" in text for port in (18008, 18010, 18011))
    assert str(proxies.ROOT) not in text
    assert not re.search(r"\{\{|\{%(?!\{)|^user |^User ", text, re.MULTILINE)


def test_silence_is_longer_than_three_of_the_servers_pings():
    """Daphne's and uvicorn's default is one every 20 s."""
    assert SILENCE_S > 3 * 20
    assert proxies.IDLE_S < KEEP_ALIVE_S


def ask(url, method, path, body=None, headers=None, source="127.0.0.1"):
    """Return the status and the body of the answer."""
    connection = http.client.HTTPConnection(
        url.removeprefix("http://"), timeout=PATIENCE_S, source_address=(source, 0)
    )
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def exchange(client, message):
    """Send the message, and return what comes back."""
    client.send(message)
    return client.recv(timeout=PATIENCE_S)


@pytest.fixture(params=PROXIES)
def front(request, fronts):
    return fronts.urls[request.param]


@pytest.mark.server
class TestFront:
    def test_http_is_passed_on(self, front):
        assert ask(front, "GET", "/") == (200, b"OK")

    def test_websocket_gives_back_a_message_of_a_megabyte(self, open_socket, front):
        with open_socket(front) as client:
            for message in ("text", os.urandom(MEGABYTE)):
                assert exchange(client, message) == message

    def test_message_above_the_limit_ends_its_socket_and_no_other(self, open_socket, front):
        """With 1009 where the server says so; Daphne hangs up without a word."""
        with open_socket(front) as other, open_socket(front) as client:
            with pytest.raises(ConnectionClosed):
                exchange(client, bytes(MESSAGE_BYTES + 1))
            assert exchange(other, "still there") == "still there"

    @pytest.mark.parametrize("size", [MEGABYTE, BODY_BYTES])
    def test_body_within_the_limit_arrives_whole(self, front, size):
        body = os.urandom(size)
        status, answer = ask(front, "POST", "/digest/", body)
        assert status == 200
        assert json.loads(answer) == {"bytes": size, "sha256": hashlib.sha256(body).hexdigest()}

    def test_body_above_the_limit_is_answered_with_413(self, front):
        """By its declared length, before any of it was sent."""
        host, _, port = front.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as client:
            head = f"POST /digest/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY_BYTES + 1}"
            client.sendall(f"{head}\r\n\r\n".encode())
            assert client.recv(4096).startswith(b"HTTP/1.1 413 ")

    @pytest.mark.parametrize("origin", ["http://elsewhere.example", None])
    def test_foreign_origin_is_refused_by_the_application(self, open_socket, front, origin):
        with pytest.raises(InvalidStatus) as refused, open_socket(front, origin=origin):
            pytest.fail("it opened")
        assert refused.value.response.status_code == 403

    @pytest.mark.parametrize("lies", [LIES, {}], ids=["lying", "honest"])
    def test_application_sees_the_clients_address_and_scheme_whatever_it_claims(self, front, lies):
        _, answer = ask(front, "GET", "/healthz", headers=lies, source="127.0.0.2")
        assert json.loads(answer)["client"] == {
            "address": "127.0.0.2",
            "scheme": "http",
            "forwarded_for": "127.0.0.2",
        }

    def test_plain_request_on_a_sockets_path_is_told_so(self, front):
        assert ask(front, "GET", "/ws/echo/")[0] == 426


@pytest.fixture(params=PROXIES.values(), ids=PROXIES)
def handshakes(request, fronts, tmp_path_factory):
    """The headers of the handshakes that an application is sent; and the URL of what is in front.

    Daphne has no way to show what it was sent.
    """
    received = []

    class Application(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/ws/echo/":
                received.append(dict(self.headers.items()))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Application) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        folder = tmp_path_factory.mktemp("handshakes")
        yield received, fronts.put_in_front(request.param, [server.server_port], folder)
        server.shutdown()


@pytest.mark.server
def test_handshake_says_what_the_proxy_knows_and_nothing_that_the_client_claims(handshakes):
    received, url = handshakes
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Origin": url}
    ask(url, "GET", "/ws/echo/", headers=upgrade | KEY | LIES, source="127.0.0.2")
    (headers,) = received
    headers = {name.lower(): value for name, value in headers.items()}
    assert headers["x-forwarded-for"] == "127.0.0.2"
    assert headers["x-forwarded-proto"] == "http"
    assert (headers["upgrade"].lower(), headers["connection"].lower()) == ("websocket", "upgrade")
    assert headers["host"] == url.removeprefix("http://")
    assert headers["origin"] == url
    kept = {"x-forwarded-for", "x-forwarded-proto"}
    assert not ({name.lower() for name in LIES} - kept) & set(headers)


@pytest.mark.server
def test_upgrade_to_anything_but_a_websocket_is_not_passed_on(handshakes):
    received, url = handshakes
    asked = KEY | {"Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": ""}
    for upgrade in ("h2c", "websocket, h2c", "h2c, websocket"):
        ask(url, "GET", "/ws/echo/", headers=asked | {"Upgrade": upgrade})
    assert len(received) == 3
    for headers in received:
        passed_on = {name.lower(): value.lower() for name, value in headers.items()}
        assert "upgrade" not in passed_on
        assert "upgrade" not in passed_on.get("connection", "")
    # In a line of its own a proxy may leave the other one out.
    ask(url, "GET", "/ws/echo/", headers=asked | {"Upgrade": "websocket", "upgrade": "h2c"})
    assert "h2c" not in str(received[3]).lower()


@pytest.fixture
def mortals():
    """What was asked of three processes of an application, which hang up over it; their ports."""
    asked = []

    class Application(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            if self.path == "/digest/":
                asked.append(self.command)
                self.close_connection = True
                return
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *args):
            pass

    with ExitStack() as stack:
        servers = [ThreadingHTTPServer(("127.0.0.1", 0), Application) for _ in range(3)]
        for server in map(stack.enter_context, servers):
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            stack.callback(server.shutdown)
        yield asked, [server.server_port for server in servers]


@pytest.mark.server
@each_proxy
def test_request_that_may_have_had_an_effect_is_never_sent_twice(
    proxy, fronts, mortals, tmp_path_factory
):
    asked, ports = mortals
    url = fronts.put_in_front(proxy, ports, tmp_path_factory.mktemp("mortals"))
    assert ask(url, "POST", "/digest/", b"one")[0] == 502
    assert asked == ["POST"]
    assert ask(url, "GET", "/digest/")[0] == 502
    again = asked.count("GET")
    # So it would be seen. Apache goes on to another process only where it cannot connect.
    assert again == 1 if proxy.name == "apache" else again > 1


@pytest.mark.server
def test_client_that_never_ends_its_headers_is_let_go(fronts):
    """On every proxy at the same time: it takes as long as the slowest of them."""
    clients = {}
    for name, url in fronts.urls.items():
        host, _, port = url.removeprefix("http://").partition(":")
        clients[name] = socket.create_connection((host, int(port)), timeout=3 * REQUEST_S)
        clients[name].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    for name, client in clients.items():
        with client:
            assert client.recv(4096)[:12] in (b"HTTP/1.1 408", b""), name


@pytest.mark.server
@pytest.mark.timeout(240)
def test_idle_socket_is_open_after_90_seconds(fronts):
    """Of all proxies at the same time, and of the time that other tests took. The last of this
    module, which is the last that needs the fronts: it ends them."""
    try:
        time.sleep(max(0.0, fronts.opened_s + IDLE_S - time.monotonic()))
        for name, client in fronts.idle.items():
            assert exchange(client, name) == name
    finally:
        fronts.close()
