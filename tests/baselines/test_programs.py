"""Each baseline really started: what it answers must be what the Django project answers."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.test import RequestFactory

from bench.baselines.programs import BASELINES, Baseline
from bench.environment import HOST
from testproject.views import hello

PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
START_S = 30
BUILD_S = 110
# The transport's own, which every server writes in its own way.
NOT_THE_PAGE = {"server", "date", "connection", "keep-alive"}


@pytest.fixture(scope="module", params=BASELINES.values(), ids=BASELINES)
def served(request, tmp_path_factory) -> Iterator["Served"]:
    """One baseline after the other, each started once and stopped after its tests."""
    baseline = request.param
    if shutil.which(baseline.toolchain.executable, path=PATH) is None:
        missing = f"{baseline.toolchain.executable} is missing: {baseline.toolchain.remedy}"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    folder = tmp_path_factory.mktemp(baseline.name)
    with started(baseline, folder) as process:
        yield process


@dataclass(frozen=True)
class Served:
    port: int
    group: int  # the process group that all of the server's processes are in


def test_baseline_answers_as_the_django_page_does(served):
    page = hello(RequestFactory().get("/"))
    status, headers, body = get(served.port)
    assert (status, body) == (page.status_code, page.content)
    assert without_transport(headers) == without_transport(page.headers)


def test_baseline_drops_none_of_128_clients_while_it_is_busy(served):
    """The largest number of clients of "Maximum Throughput, 2012". A stopped server accepts none
    of them, so all must fit into its backlog: a connection too many is not made in time."""
    with ExitStack() as clients:
        os.killpg(served.group, signal.SIGSTOP)
        try:
            connected = [clients.enter_context(connection(served.port)) for _ in range(128)]
        finally:
            os.killpg(served.group, signal.SIGCONT)
        for client in connected:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert {client.makefile("rb").read()[-2:] for client in connected} == {b"OK"}


@contextmanager
def started(baseline: Baseline, folder: Path) -> Iterator[Served]:
    environment = os.environ | {"PATH": PATH}
    binary = str(folder / "built")
    if build := baseline.build(binary):
        subprocess.run(build, check=True, timeout=BUILD_S, cwd=folder, env=environment)
    port, log = free_port(), folder / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            baseline.command(port, binary),
            cwd=folder,
            env=environment,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        wait_until_it_answers(port, process, log)
        yield Served(port, process.pid)
    finally:
        stop(process)


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def connection(port: int) -> socket.socket:
    """Connect; a connection that the kernel dropped would be tried again after a whole second."""
    made = socket.create_connection((HOST, port), timeout=0.9)
    made.settimeout(10)
    return made


def wait_until_it_answers(port: int, process: subprocess.Popen, log: Path) -> None:
    until = time.monotonic() + START_S
    while True:
        assert process.poll() is None, log.read_text()
        try:
            get(port)
        except OSError:
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        else:
            return


def get(port: int) -> tuple[int, dict[str, str], bytes]:
    client = http.client.HTTPConnection(HOST, port, timeout=10)
    try:
        client.request("GET", "/")
        response = client.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        client.close()


def without_transport(headers) -> dict[str, str]:
    page = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in page.items() if name not in NOT_THE_PAGE}
