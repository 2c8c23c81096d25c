"""Fronts really started: what nginx and the servers behind it drop, and what is left behind."""

import os
import shutil
import socket
from contextlib import ExitStack

import psutil
import pytest

from bench import ports, remains, supervise
from bench.baselines import serving, sites
from bench.baselines.measuring import listen_overflows
from bench.environment import HOST
from bench.errors import BadInput

pytestmark = pytest.mark.server

SITES = {
    site.name: site
    for site in (
        sites.nginx_alone(),
        sites.uwsgi("wsgi", "http", "tcp"),
        sites.uwsgi("wsgi", "fastcgi", "unix"),
        sites.uwsgi("wsgi", "uwsgi", "unix"),
        sites.uwsgi_django("none"),
        sites.gunicorn("unix"),
        sites.ladder("daphne", "stock", "one_hop"),
    )
}
CLIENTS = 128  # the most that "Maximum Throughput, 2012" has


@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_front_and_server_drop_none_of_128_clients_while_both_are_busy(site):
    require(site)
    with serving.served(site) as served, ExitStack() as clients:
        dropped = listen_overflows()
        stopped = [psutil.Process(pid) for pid in supervise.tree(served.pid) - {served.pid}]
        try:
            for process in stopped:
                process.suspend()
            made = [clients.enter_context(connection(site.ports[0])) for _ in range(CLIENTS)]
        finally:
            for process in stopped:
                process.resume()
        for client in made:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        replies = [client.makefile("rb").read() for client in made]
        assert {reply[:12] for reply in replies} == {b"HTTP/1.1 200"}
        assert {reply[-2:] for reply in replies} == {b"OK"}
        assert listen_overflows() == dropped


def test_site_leaves_no_process_and_no_socket_behind():
    site = SITES["gunicorn-wsgi-http-unix"]
    require(site)
    with serving.served(site) as served:
        pids = supervise.tree(served.pid)
        names = {psutil.Process(pid).name() for pid in pids}
        assert {"supervisord", "nginx"} <= names
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not sites.SOCKET.exists()
    assert all(ports.is_free(port) for port in site.ports)
    assert remains.sweep() == []


def test_site_that_answers_something_else_is_not_measured(monkeypatch):
    monkeypatch.setattr(serving, "OK", (b"OK", "text/html", "2"))
    require(SITES["nginx"])
    with (
        pytest.raises(supervise.StartFailed, match="text/plain"),
        serving.served(SITES["nginx"]),
    ):
        pytest.fail("it should not have been yielded")
    assert ports.is_free(ports.NGINX)


def test_port_that_somebody_else_holds_is_named():
    require(SITES["nginx"])
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((HOST, ports.NGINX))
        other.listen()
        with pytest.raises(BadInput, match=f"{ports.NGINX}.*{os.getpid()}"):
            serving.require(SITES["nginx"])


def test_toolchain_that_is_missing_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert serving.missing(sites.http_program("go")) == ("go is missing: apt-get install golang-go")


def require(site):
    """Fail in CI where this machine lacks what ``site`` is made with; skip with the reason here."""
    if lacking := serving.missing(site):
        pytest.fail(lacking) if os.environ.get("CI") == "true" else pytest.skip(lacking)


def connection(port):
    """Connect; a connection that the kernel dropped would be tried again after a whole second."""
    made = socket.create_connection((HOST, port), timeout=0.9)
    made.settimeout(10)
    return made
