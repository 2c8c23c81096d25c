"""nginx, haproxy and Apache, all in front of the same four processes of Daphne.

The idle sockets are opened first and looked at last: everything else happens while they wait.
"""

import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from bench import ports, proxies
from bench.environment import KEEP_ALIVE_S, MESSAGE_BYTES
from bench.proxies import BODY_BYTES, PROXIES, REQUEST_S, SILENCE_S
from bench.supervise import deployed
from bench.variants import Variant

PATIENCE_S = 30.0
IDLE_S = 90.0
MEGABYTE = 1024 * 1024
VARIANT = Variant("daphne", "ipc", processes=4, proxy="nginx", sharing="ports")
PROGRAMS = {"nginx": "nginx", "haproxy": "haproxy", "apache": "apache2"}
# A client's own idea of where it comes from, in every spelling that a server may take for another.
LIES = {
    "X-Forwarded-For": "203.0.113.7",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Port": "1",
    "X-Forwarded-Host": "elsewhere.example",
    "X-Real-IP": "203.0.113.8",
    "Forwarded": "for=203.0.113.9;proto=https",
    "X_Forwarded_For": "203.0.113.10",
    "X_Forwarded_Proto": "https",
}
each_proxy = pytest.mark.parametrize("proxy", PROXIES.values(), ids=PROXIES)


def require_program(name):
    if shutil.which(PROGRAMS[name], path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip(f"{PROGRAMS[name]} is missing: bin/install-system-packages")


@each_proxy
@pytest.mark.parametrize("as_root", [False, True] if os.geteuid() == 0 else [False])
def test_configuration_passes_its_servers_own_check(proxy, as_root, tmp_path):
    require_program(proxy.name)
    text = proxies.rendered(proxy, 18008, (18010, 18011), as_root=as_root)
    (tmp_path / proxy.file).write_text(text)
    checked = subprocess.run(proxy.check, cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert checked.returncode == 0, checked.stderr
    assert checked.stderr.strip() in ("", "Syntax OK")


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


@pytest.fixture(scope="module")
def fronts(tmp_path_factory):
    """Proxy -> the URL of one that runs, each in front of the same processes."""
    for name in PROXIES:
        require_program(name)
    with deployed(VARIANT) as deployment:
        urls, processes = {"nginx": deployment.base_url}, []
        try:
            for name in ("haproxy", "apache"):
                folder = tmp_path_factory.mktemp(name)
                folder.chmod(0o755)  # Apache's workers may be another account's
                urls[name], process = started(PROXIES[name], folder)
                processes.append(process)
            yield urls
        finally:
            for process in processes:
                process.terminate()
                process.wait(PATIENCE_S)


def started(proxy, folder):
    """Return the URL of the proxy in front of VARIANT's processes, when it serves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    application = ports.application(VARIANT)
    text = proxies.rendered(proxy, port, application, as_root=os.geteuid() == 0)
    (folder / proxy.file).write_text(text)
    command = {
        "haproxy": ("haproxy", "-W", "-db", "-f", proxy.file),
        "apache": ("apache2", "-D", "FOREGROUND", "-d", str(folder), "-f", proxy.file),
    }[proxy.name]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    until = time.monotonic() + PATIENCE_S
    while not serves(url):
        assert time.monotonic() < until, (folder / "log").read_text()
        time.sleep(0.05)
    return url, process


def serves(url):
    try:
        return ask(url, "GET", "/")[0] == 200
    except OSError:
        return False


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


def open_socket(url, **options):
    """Open an echo socket that sends no pings of its own: what keeps it open is the server."""
    options = {"origin": url, "ping_interval": None, "max_size": None} | options
    return connect(
        f"ws{url.removeprefix('http')}/ws/echo/", compression=None, proxy=None, **options
    )


def exchange(client, message):
    """Send the message, and return what comes back."""
    client.send(message)
    return client.recv(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def idle(fronts):
    """Proxy -> a socket on which nothing was said yet; and when they were opened."""
    with ExitStack() as stack:
        sockets = {name: stack.enter_context(open_socket(url)) for name, url in fronts.items()}
        yield sockets, time.monotonic()


@pytest.fixture(params=PROXIES)
def front(request, fronts, idle):
    return fronts[request.param]


@pytest.mark.server
class TestFront:
    def test_http_is_passed_on(self, front):
        assert ask(front, "GET", "/") == (200, b"OK")

    def test_websocket_gives_back_a_message_of_a_megabyte(self, front):
        with open_socket(front) as client:
            for message in ("text", os.urandom(MEGABYTE)):
                assert exchange(client, message) == message

    def test_message_above_the_limit_ends_its_socket_and_no_other(self, front):
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
    def test_foreign_origin_is_refused_by_the_application(self, front, origin):
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

    def test_upgrade_to_anything_but_a_websocket_is_not_passed_on(self, front):
        headers = {"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": ""}
        assert ask(front, "GET", "/", headers=headers) == (200, b"OK")

    def test_plain_request_on_a_sockets_path_is_told_so(self, front):
        assert ask(front, "GET", "/ws/echo/")[0] == 426


@pytest.mark.server
def test_client_that_never_ends_its_headers_is_let_go(fronts, idle):
    """On every proxy at the same time: it takes as long as the slowest of them."""
    clients = {}
    for name, url in fronts.items():
        host, _, port = url.removeprefix("http://").partition(":")
        clients[name] = socket.create_connection((host, int(port)), timeout=3 * REQUEST_S)
        clients[name].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    for name, client in clients.items():
        with client:
            assert client.recv(4096)[:12] in (b"HTTP/1.1 408", b""), name


@pytest.mark.server
@pytest.mark.timeout(240)
def test_idle_socket_is_open_after_90_seconds(fronts, idle):
    """Of all proxies at the same time, and of the time that the tests before this one took."""
    sockets, opened_s = idle
    time.sleep(max(0.0, opened_s + IDLE_S - time.monotonic()))
    for name, client in sockets.items():
        assert exchange(client, name) == name
