"""A fault hits the deployment that it is meant for, or it is not caused."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench.faults import cases
from bench.faults.cases import FAULTS, Unharmed
from bench.supervise import Deployment
from bench.variants import resolve

# supervisord's pid: nobody has one that high.
DEPLOYMENT = Deployment(resolve("uvicorn-ipc-nginx-x4-ports"), {}, 2**22 + 1)
each_end = pytest.mark.parametrize("name", ["kill", "restart", "down"])


@pytest.fixture
def struck(monkeypatch):
    """What the fault would have signalled or stopped."""
    found = []
    monkeypatch.setattr(os, "kill", lambda *what: found.append(what))
    monkeypatch.setattr(cases.control, "stop", lambda *names: found.append(names))
    monkeypatch.setattr(cases.control, "start", lambda *names: None)
    programs = [{"group": "django_channels", "name": "uvicorn_8010", "pid": os.getpid()}]
    monkeypatch.setattr(cases.control, "programs", lambda: programs)
    return found


@each_end
def test_fault_is_not_caused_where_nobody_serves(name, struck, free_port, monkeypatch):
    monkeypatch.setattr(cases.ports, "APPLICATION_FIRST", free_port)
    with pytest.raises(Unharmed, match=f"nobody serves on port {free_port}"):
        FAULTS[name].cause(DEPLOYMENT)
    assert struck == []


@each_end
def test_fault_does_not_hit_a_stranger_who_has_the_port(name, struck, monkeypatch):
    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"pid": os.getpid()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setattr(cases.ports, "APPLICATION_FIRST", server.server_port)
        with pytest.raises(Unharmed, match=r"is not the deployment's"):
            FAULTS[name].cause(DEPLOYMENT)
        server.shutdown()
    assert struck == []


def test_proxy_that_does_not_run_is_not_signalled(struck, monkeypatch):
    monkeypatch.setattr(cases.control, "programs", lambda: [{"name": "nginx", "pid": 0}])
    with pytest.raises(Unharmed, match="supervisord runs no nginx"):
        FAULTS["reload"].cause(DEPLOYMENT)
    assert struck == []


def test_reload_that_brings_no_new_worker_was_none(start, monkeypatch):
    deaf = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); print(); signal.pause()"
    proxy = start(sys.executable, "-u", "-c", deaf, stdout=subprocess.PIPE)
    with proxy.stdout as printed:
        printed.readline()
    monkeypatch.setattr(cases.control, "programs", lambda: [{"name": "nginx", "pid": proxy.pid}])
    monkeypatch.setattr(cases, "BACK_S", 0.3)
    with pytest.raises(Unharmed, match="nginx has new workers"):
        FAULTS["reload"].cause(DEPLOYMENT)
