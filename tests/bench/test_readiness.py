"""When a deployment counts as ready, asked of small servers that are not."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench import ports, readiness
from bench.variants import Variant, resolve

VARIANT = resolve("gunicorn")
TOLD = {
    "server": "gunicorn",
    "interface": "wsgi",
    "layer": "none",
    "middleware": "stock",
    "settings": "settings.no_channels",
    "pid": os.getpid(),
}


@pytest.fixture
def answers(monkeypatch):
    """Path -> (status, headers, body) of a server on the port that is looked at."""
    table = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = table[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        monkeypatch.setattr(ports, "GUNICORN_ONE_WORKER", server.server_port)
        monkeypatch.setattr(ports, "APPLICATION", server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield table
        server.shutdown()
        thread.join()


def ours():
    return {os.getpid()}


def healthz(status=200, body=None, **changed):
    return status, {}, json.dumps(TOLD | changed).encode() if body is None else body


def test_identity_is_what_a_server_of_ours_says(answers):
    answers["/healthz"] = healthz()
    assert readiness.identity(VARIANT, ours) == TOLD


def test_identity_of_a_port_where_nobody_listens_is_not_ready(monkeypatch, free_port):
    monkeypatch.setattr(ports, "APPLICATION", free_port)
    with pytest.raises(readiness.NotReady, match=r"GET /healthz: .*refused"):
        readiness.identity(VARIANT, ours)


def test_identity_of_a_server_that_fails_is_not_ready(answers):
    answers["/healthz"] = healthz(503)
    with pytest.raises(readiness.NotReady, match="/healthz answers 503"):
        readiness.identity(VARIANT, ours)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (healthz(layer="redis"), "layer is 'redis' and should be 'none'"),
        (healthz(pid=1), "pid 1 answers on port .* and is not ours"),
        (healthz(body=b"<html>"), "not a JSON object"),
        (healthz(body=b"[]"), "not a JSON object"),
    ],
)
def test_identity_of_somebody_else_is_wrong_at_once(answers, reply, reason):
    answers["/healthz"] = reply
    with pytest.raises(readiness.Wrong, match=reason):
        readiness.identity(VARIANT, ours)


def test_everyone_waits_for_as_many_processes_as_there_should_be(answers):
    answers["/healthz"] = healthz()
    with pytest.raises(readiness.NotReady, match="1 of 2 server processes have answered"):
        readiness.everyone(Variant("gunicorn", processes=2), set())
    readiness.everyone(Variant("gunicorn", processes=2), {1})
    readiness.everyone(VARIANT, set())


@pytest.mark.parametrize(
    ("reply", "error", "reason"),
    [
        ((504, {}, b"No worker."), readiness.NotReady, "/relay/ answers 504: No worker."),
        ((200, {}, b"OK"), readiness.NotReady, "/relay/ answers 200"),
        ((200, {"X-Worker-Pid": "1"}, b"OK"), readiness.Wrong, "worker 1 .* is not ours"),
    ],
)
def test_relay_wants_a_worker_of_ours(answers, reply, error, reason):
    answers["/relay/"] = reply
    with pytest.raises(error, match=reason):
        readiness.relay(resolve("daphne-ipc"), ours)


def test_relay_is_ready_when_a_worker_of_ours_answers(answers):
    answers["/relay/"] = (200, {"X-Worker-Pid": str(os.getpid())}, b"OK")
    readiness.relay(resolve("daphne-ipc"), ours)


def test_wait_gives_the_last_reason_when_time_is_up():
    def never():
        raise readiness.NotReady("not yet")

    with pytest.raises(readiness.NotReady, match="not yet"):
        readiness.wait(never, until=0, alive=lambda: None)


def test_wait_ends_at_once_where_nothing_will_come():
    def dead():
        raise readiness.Wrong("it has ended")

    with pytest.raises(readiness.Wrong, match="it has ended"):
        readiness.wait(lambda: pytest.fail("it was asked"), until=float("inf"), alive=dead)
