"""Locust's master and workers, as real processes on loopback."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.records import load_from

LOCUST_FILES = Path(__file__).parent.parent.parent / "locustfiles"
LIMIT_S = 60


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture
def swarm(tmp_path):
    """Start two workers and a master, and return them, and where the result will be."""
    with ExitStack() as stack:

        def start(file: str, *arguments: object):
            port = free_port()

            def locust(name: str, *more: object) -> subprocess.Popen:
                log = stack.enter_context((tmp_path / f"{name}.log").open("wb"))
                command = [sys.executable, "-P", "-m", "locust", "-f", str(LOCUST_FILES / file)]
                process = subprocess.Popen(
                    [*command, "--loglevel", "WARNING", *map(str, more)],
                    cwd=tmp_path,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
                stack.callback(process.wait)
                stack.callback(process.kill)
                return process

            workers = [locust(f"worker{i}", "--worker", "--master-port", port) for i in (1, 2)]
            bound = ("--master-bind-host", "127.0.0.1", "--master-bind-port", port)
            leading = ("--master", *bound, "--expect-workers", 2, "--headless", "--only-summary")
            result = tmp_path / "load.json"
            master = locust("master", *leading, "--result-json", result, *arguments)
            return master, workers, result

        yield start


def on(port: int) -> tuple[str, str]:
    return ("--host", f"http://127.0.0.1:{port}")


def test_two_workers_share_the_rate_and_lose_no_request(serve, swarm):
    server = serve()
    master, workers, result = swarm("http.py", "Latency", *on(server.port), "--rps", 300, "-t", 2)
    assert master.wait(LIMIT_S) == 0
    assert [worker.wait(LIMIT_S) for worker in workers] == [0, 0]
    load = load_from(json.loads(result.read_text()))
    assert load.scheduled == load.sent == load.ok == 600
    assert (load.rate_rps, load.warnings) == (300.0, ())
    assert [bucket.sent for bucket in load.buckets] == [300, 300]
    # Each worker looks once before it starts, and so does the master.
    assert server.stop()["requests"] == 600 + 3


def test_two_workers_share_the_clients_of_a_closed_loop(serve, swarm):
    server = serve(service_s=0.002)
    arguments = ("--clients", 5, "--requests", 301, "-t", 20)
    master, _, result = swarm("http.py", "Throughput", *on(server.port), *arguments)
    assert master.wait(LIMIT_S) == 0
    load = load_from(json.loads(result.read_text()))
    assert (load.sent, load.ok, load.concurrency) == (301, 301, 5)
    assert load.inflight_mean <= 5.01
    seen = server.stop()
    assert seen["requests"] == 301 + 3
    assert seen["waiting_max"] <= 5


def test_worker_that_is_lost_leaves_a_warning_and_exit_code_3(serve, swarm):
    server = serve()
    master, workers, result = swarm("http.py", "Latency", *on(server.port), "--rps", 50, "-t", 4)
    server.wait_for(60)
    workers[0].kill()
    assert master.wait(LIMIT_S) == 3
    load = load_from(json.loads(result.read_text()))
    assert any("is gone: its requests are not counted" in said for said in load.warnings)
    assert 0 < load.ok < 200


def test_interrupted_master_has_the_result_of_both(serve, swarm):
    server = serve()
    master, _, result = swarm("http.py", "Latency", *on(server.port), "--rps", 100, "-t", 50)
    server.wait_for(60)
    master.send_signal(signal.SIGINT)
    assert master.wait(LIMIT_S) == 130
    load = load_from(json.loads(result.read_text()))
    assert load.ok == load.scheduled > 50
    assert "stopped before its time" in load.warnings
