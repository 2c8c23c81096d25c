"""What each proxy promises while something behind it breaks, four processes on four ports.

The idle sockets of ``fronts`` are opened first, so that they wait while these tests go on.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from bench import ports
from bench.environment import MESSAGE_BYTES, ROOT
from bench.faults.cases import DOWN_S, FAULTS, outcome, own
from bench.faults.traffic import CLIENTS
from bench.proxies import PROXIES as FRONTS
from bench.supervise import deployed
from bench.variants import Variant

pytestmark = pytest.mark.server
PROXIES = ("nginx", "haproxy", "apache")
PATIENCE_S = 30.0
PROCESSES = 4
SOCKETS = 64
HANG_FOUND_S = 15.0  # two checks in a row must have waited in vain


def behind(proxy, server, layer="none"):
    return Variant(server, layer, processes=PROCESSES, proxy=proxy, sharing="ports")


@pytest.fixture(scope="class", params=PROXIES)
def sockets(request, installed, fronts):
    """A deployment that serves sockets, and names the process of each."""
    with deployed(installed(behind(request.param, "uvicorn", "ipc"))) as running:
        yield running


@pytest.fixture(scope="class", params=PROXIES)
def requests(request, installed, fronts):
    """A deployment whose processes serve one request at a time: nothing is hidden from a proxy."""
    with deployed(installed(behind(request.param, "gunicorn"))) as running:
        yield running


def open_socket(deployment):
    return connect(
        f"{deployment.websocket_url}/ws/echo/",
        origin=deployment.base_url,
        compression=None,
        proxy=None,
        max_size=None,
    )


def process(socket):
    return socket.response.headers["X-Server-Pid"]


def assert_even(opened):
    counts = Counter(map(process, opened))
    assert len(counts) == PROCESSES
    assert all(14 <= count <= 18 for count in counts.values()), counts


def spared(deployment):
    """How many requests may be lost: Apache sends none again that a process has had."""
    return CLIENTS if deployment.variant.proxy == "apache" else 0


def assert_front_refused_no_socket(found, deployment):
    """One that its process had begun is not the front's to save; uvicorn ends it with 500."""
    own = ("open, then", "status 500")
    refused = [kind for kind in found.handshakes_failed if not kind.startswith(own)]
    assert sum(found.handshakes_failed[kind] for kind in refused) <= bool(spared(deployment))


class TestSockets:
    def test_64_sockets_are_spread_evenly_over_four_processes(self, sockets):
        """And again when those of one process have gone: to take turns would not be enough."""
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(open_socket(sockets)) for _ in range(SOCKETS)]
            assert_even(opened)
            leaving = [one for one in opened if process(one) == process(opened[0])]
            for one in leaving:
                one.close()
            with ThreadPoolExecutor(len(leaving)) as pool:
                come = list(pool.map(lambda _: open_socket(sockets), leaving))
            for one in come:
                stack.enter_context(one)
            assert_even([one for one in opened if one not in leaving] + come)

    def test_message_above_the_limit_is_answered_with_1009(self, sockets):
        with open_socket(sockets) as client:
            # Its header alone: a message that is still on its way can cost the close frame.
            client.socket.sendall(b"\x82\xff" + (MESSAGE_BYTES + 1).to_bytes(8) + b"mask")
            with pytest.raises(ConnectionClosed) as closed:
                client.recv(timeout=PATIENCE_S)
            assert closed.value.rcvd.code == 1009

    def test_reload_loses_no_request_and_no_socket(self, sockets):
        found = outcome(sockets, FAULTS["reload"])
        assert found.requests > 50
        assert found.requests_lost == 0, found.results
        assert (found.sockets, found.sockets_ended) == (32, {})
        assert found.handshakes > 10
        assert found.handshakes_failed == {}
        assert (found.messages_lost, found.messages_wrong) == (0, 0)

    def test_restart_of_a_server_loses_only_the_sockets_it_had(self, sockets):
        found = outcome(sockets, FAULTS["restart"])
        assert found.requests > 50
        assert found.requests_lost <= spared(sockets), found.results
        assert found.sockets_ended.keys() == {"closed 1012"}
        assert found.sockets_lost == 0
        assert 0 < found.sockets_inevitable < found.sockets / 2
        assert found.messages_lost <= found.sockets_inevitable
        assert_front_refused_no_socket(found, sockets)
        assert found.messages_wrong == 0

    def test_kill_of_a_process_loses_only_the_sockets_it_had(self, sockets):
        found = outcome(sockets, FAULTS["kill"])
        assert found.requests > 50
        waited = found.slowest_ms > 100 or found.requests_lost > 0
        assert waited, "nobody was waiting for the process that was killed"
        assert found.requests_lost <= spared(sockets), found.results
        assert_front_refused_no_socket(found, sockets)
        assert found.sockets_lost == 0
        assert 0 < found.sockets_inevitable < found.sockets / 2
        assert found.messages_lost <= found.sockets_inevitable
        assert found.messages_wrong == 0

    def test_clients_are_refused_at_once_while_every_process_is_down(self, sockets):
        found = outcome(sockets, FAULTS["down"])
        said = "status 502" if sockets.variant.proxy == "nginx" else "status 503"
        begun = found.requests - found.results["ok"] - found.results[said]
        # Behind haproxy one was cut off in some thirty runs on a busy machine; why is not known.
        allowed = max(spared(sockets), int(sockets.variant.proxy == "haproxy"))
        assert begun <= allowed, found.results
        assert found.median_failure_ms < 100
        assert found.slowest_failure_ms < 2_000
        assert found.slowest_ms < 1_000 * DOWN_S, "somebody waited until a process was back"
        begun = sum(found.handshakes_failed.values()) - found.handshakes_failed[said]
        assert begun <= 2, found.handshakes_failed
        assert found.sockets_ended == {"closed 1012": found.sockets}
        assert ask(sockets, "/") == (200, b"OK")

    def test_process_that_is_taken_out_keeps_its_sockets_and_gets_no_other(
        self, sockets, taken_out
    ):
        proxy, port = FRONTS[sockets.variant.proxy], ports.application(sockets.variant)[0]
        file = ROOT / "run" / proxy.file
        before = file.read_text()
        try:
            with contextlib.ExitStack() as stack:
                old = [stack.enter_context(open_socket(sockets)) for _ in range(2 * PROCESSES)]
                out = own(sockets, port)
                staying = [one for one in old if process(one) == str(out)]
                assert staying
                file.write_text(taken_out(proxy, before, port))
                FAULTS["reload"].cause(sockets)
                new = [stack.enter_context(open_socket(sockets)) for _ in range(4 * PROCESSES)]
                assert len(set(map(process, new))) == PROCESSES - 1
                assert str(out) not in set(map(process, new))
                for one in staying:
                    one.send("still here")
                    assert one.recv(timeout=PATIENCE_S) == "still here"
        finally:
            file.write_text(before)
            FAULTS["reload"].cause(sockets)

    def test_process_that_hangs_is_left_out_where_the_proxy_asks_how_it_is(self, sockets):
        """nginx asks nobody, and Apache waits for an answer as long as for any other."""
        found = sockets.variant.proxy == "haproxy"
        pid = own(sockets, ports.application(sockets.variant)[0])
        with contextlib.ExitStack() as stack:
            # So many on each of the others that every request would go to the one that hangs.
            for one in [stack.enter_context(open_socket(sockets)) for _ in range(SOCKETS)]:
                if process(one) == str(pid):
                    one.close()
            os.kill(pid, signal.SIGSTOP)
            stack.callback(os.kill, pid, signal.SIGCONT)
            time.sleep(HANG_FOUND_S if found else 0.0)
            answered = [answers(sockets) for _ in range(8)]
        assert all(answered) if found else not any(answered)


class TestRequests:
    def test_kill_of_a_worker_of_gunicorn_loses_nothing_that_could_be_sent_again(self, requests):
        found = outcome(requests, FAULTS["kill"])
        assert found.requests > 50
        assert found.requests_lost <= spared(requests), found.results

    def test_slow_clients_hold_up_nobody(self, requests):
        """Three times as many as there are processes send a body, a byte at a time."""
        host, _, port = requests.base_url.removeprefix("http://").partition(":")
        head = b"POST /digest/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
        with contextlib.ExitStack() as stack:
            slow = [
                stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
                for _ in range(3 * PROCESSES)
            ]
            for client in slow:
                client.sendall(head)
            took_s = []
            for _ in range(10):
                for client in slow:
                    client.sendall(b"x")
                began_s = time.monotonic()
                assert ask(requests, "/") == (200, b"OK")
                took_s.append(time.monotonic() - began_s)
                time.sleep(0.1)
        assert statistics.median(took_s) < 1

    def test_wsgi_application_finds_the_clients_address_in_one_header(self, requests):
        """gunicorn leaves REMOTE_ADDR at the proxy's, and believes its X-Forwarded-Proto."""
        lies = {
            "X-Forwarded-For": "203.0.113.7",
            "X_Forwarded_For": "203.0.113.8",
            "X-Forwarded-Proto": "https",
            "X_Forwarded_Proto": "https",
            "X-Forwarded-Ssl": "on",
            "SCRIPT_NAME": "/healthz",
        }
        _, answer = ask(requests, "/healthz", lies)
        assert json.loads(answer)["client"] == {
            "address": "127.0.0.1",
            "scheme": "http",
            "forwarded_for": "127.0.0.2",
        }


def answers(deployment):
    """Whether a request is answered within a second."""
    try:
        return ask(deployment, "/", timeout=1.0)[0] == 200
    except TimeoutError:
        return False


def ask(deployment, path, headers=None, timeout=PATIENCE_S):
    connection = http.client.HTTPConnection(
        deployment.base_url.removeprefix("http://"),
        timeout=timeout,
        source_address=("127.0.0.2", 0),
    )
    try:
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
