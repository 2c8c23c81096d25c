"""The generator as the campaign starts it: a process that is bounded, pinned, and read back."""

import dataclasses
import http.server
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import load
from bench.errors import BadInput
from bench.load import LoadFailed, LoadSpec, command, pinned, running

LATENCY = LoadSpec("latency", "open", "http://127.0.0.1:8000/", 1, rate_rps=100)
THROUGHPUT = LoadSpec("throughput", "closed", "http://127.0.0.1:8000/", 1, concurrency=10)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"OK")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve OK from a thread."""

    class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
        request_queue_size = 1024
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def value(arguments: tuple[str, ...], flag: str) -> str:
    return arguments[arguments.index(flag) + 1]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rate_rps": 0}, "rate above 0"),
        ({"rate_rps": None}, "rate above 0"),
        ({"duration_s": -1}, "longer than 0 s"),
        ({"warmup_s": -1}, "warm-up"),
        ({"duration_s": 1.5}, "whole seconds"),
        ({"test": "latncy"}, "latency"),
        ({"mode": "sideways"}, "did you mean"),
    ],
)
def test_spec_that_cannot_be_is_refused(changed, said):
    with pytest.raises(BadInput, match=said):
        dataclasses.replace(LATENCY, **changed)


def test_closed_loop_without_clients_is_refused():
    with pytest.raises(BadInput, match="1 client or more"):
        dataclasses.replace(THROUGHPUT, concurrency=0)


def test_warm_up_and_duration_may_share_a_second():
    assert dataclasses.replace(LATENCY, duration_s=1.5, warmup_s=0.5).duration_s == 1.5


def test_command_splits_the_url_and_adds_up_the_run_time():
    spec = dataclasses.replace(LATENCY, url="http://h:1/relay/?a=b", duration_s=20, warmup_s=3)
    arguments = command(spec, Path("out.json"))
    assert value(arguments, "--host") == "http://h:1"
    assert value(arguments, "--path") == "/relay/?a=b"
    assert value(arguments, "--run-time") == "23s"
    assert value(arguments, "--warm-up") == "3"
    assert value(arguments, "-f") == "locustfiles/http.py"


@pytest.mark.parametrize(("test", "mode"), load.TESTS)
def test_every_test_names_a_file_and_a_user_class_that_exist(test, mode):
    file, user_class = load.TESTS[test, mode]
    text = (load.ROOT / load.LOCUST_FILES[file]).read_text()
    assert f"class {user_class}(" in text


def test_pinned_command_runs_on_the_processors_asked_for():
    assert pinned(("x",), {3, 1}) == ("taskset", "--cpu-list", "1,3", "x")
    assert pinned(("x",), None) == ("x",)


def test_running_measures_on_the_processor_asked_for(url):
    spec = dataclasses.replace(LATENCY, url=url)
    cpu = max(os.sched_getaffinity(0))
    with running(spec, cpus={cpu}) as generator:
        time.sleep(0.5)
        assert os.sched_getaffinity(generator.pid) == {cpu}
        realtime = os.sched_getscheduler(generator.pid) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR
        measured = generator.result()
    assert measured.realtime is realtime
    assert bool(measured.warnings) is not realtime
    assert (measured.test, measured.mode, measured.url) == ("latency", "open", url)
    assert measured.ok == measured.scheduled == 100
    assert not alive(generator.pid)


def test_generator_without_a_processor_of_its_own_has_ordinary_priority(url):
    with running(dataclasses.replace(LATENCY, url=url)) as generator:
        assert os.sched_getscheduler(generator.pid) == os.SCHED_OTHER
        measured = generator.result()
    assert measured.realtime is False
    assert "ordinary priority: it has no processor of its own" in measured.warnings[-1]


def test_priority_that_could_starve_a_processor_is_not_given(monkeypatch, tmp_path):
    unlimited = tmp_path / "sched_rt_runtime_us"
    unlimited.write_text("-1\n")
    monkeypatch.setattr(load, "_RT_RUNTIME", unlimited)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert "starve" in load.raise_priority(os.getpid(), {0})
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_priority_is_not_inherited(monkeypatch):
    program = "import os, subprocess, sys; input(); " + (
        "print(os.sched_getscheduler(0), "
        "subprocess.check_output([sys.executable, '-c', 'import os; "
        "print(os.sched_getscheduler(0))']).decode())"
    )
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        refused = load.raise_priority(process.pid, {0})
        own, child = map(int, process.communicate("\n")[0].split())
    assert child == os.SCHED_OTHER
    assert (own & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR) is (refused is None)


def test_failed_requests_are_a_result(url):
    with running(dataclasses.replace(THROUGHPUT, url=url, expect_body="KO")) as generator:
        measured = generator.result()
    assert measured.ok == 0
    assert measured.error_kinds == {"wrong body": measured.sent}


def test_url_where_nobody_answers_is_bad_input():
    spec = dataclasses.replace(LATENCY, url="http://127.0.0.1:1/")
    with (
        running(spec) as generator,
        pytest.raises(BadInput, match="start the server first") as error,
    ):
        generator.result()
    assert "\n" not in str(error.value)


def test_generator_that_outlives_its_limit_is_killed(url, monkeypatch):
    monkeypatch.setattr(load, "START_S", -22.5)  # leaves 8.5 s less than the test takes
    spec = dataclasses.replace(LATENCY, url=url, duration_s=4)
    assert spec.limit_s == 1.5
    with running(spec) as generator, pytest.raises(LoadFailed, match="was killed"):
        generator.result()
    assert not alive(generator.pid)


def test_generator_that_dies_is_a_failure_with_its_log(url):
    with running(dataclasses.replace(LATENCY, url=url, duration_s=30)) as generator:
        os.kill(generator.pid, signal.SIGKILL)
        with pytest.raises(LoadFailed, match="exit code -9"):
            generator.result()


def test_generator_is_gone_when_the_block_is_left_early(url):
    with running(dataclasses.replace(LATENCY, url=url, duration_s=30)) as generator:
        assert alive(generator.pid)
    assert not alive(generator.pid)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"test": "latency"}'])
def test_result_that_is_none_is_a_failure(text, tmp_path):
    (tmp_path / "log").write_text("one\ntwo\n")
    if text:
        (tmp_path / "load.json").write_text(text)
    generator = load.Generator(None, LATENCY, tmp_path)
    with pytest.raises(LoadFailed) as error:
        generator._read()
    assert error.value.log_tail == "one\ntwo"
