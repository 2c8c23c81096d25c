"""Variants that really run, under the project's own supervisord, one after the other.

Beside them, on ports of their own, all proxies in front of one application: so that sockets may be
left idle there while other tests go on.
"""

import configparser
import http.client
import os
import re
import shlex
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager

import pytest
from websockets.sync.client import connect

from bench import proxies
from bench.environment import HOST, ROOT, configuration, environment, executables
from bench.proxies import PROXIES
from bench.supervise import BIN, deployed, remedy
from bench.variants import LAYERS, VARIANTS, Variant

PATIENCE_S = 30.0
BEHIND = Variant("daphne", "inmemory", proxy="nginx")  # no layer is asked to cross processes
PROCESSES = 4
SEARCH_PATH = f"{BIN}:{os.environ['PATH']}:/usr/sbin"


def pytest_runtest_setup(item):
    """Skip, and say so, what needs a Redis server where there is none."""
    if item.get_closest_marker("redis") and shutil.which("redis-server") is None:
        pytest.skip("redis-server is missing: apt-get install redis-server")


def parameter(variant):
    marks = [pytest.mark.redis] if LAYERS[variant.layer].service == "redis" else []
    return pytest.param(variant, marks=marks, id=variant.name)


TODAY = [parameter(variant) for variant in VARIANTS.values() if variant.stack == "today"]


@pytest.fixture(scope="session")
def installed():
    """Skip, and say so, what needs a program of a variant that is not on this machine."""

    def require(variant):
        for program in executables(variant):
            if shutil.which(program, path=SEARCH_PATH) is None:
                pytest.skip(f"{program} is missing: {remedy(program)}")
        return variant

    return require


@pytest.fixture(scope="module", params=TODAY)
def deployment(request, installed):
    """Each variant in turn, ready; all tests of a module see it before the next one starts."""
    with deployed(installed(request.param)) as running:
        yield running


@pytest.fixture(scope="session")
def taken_out():
    """Return a function that does to a configuration what the document says takes a process out."""
    document = (ROOT / "docs" / "balancing.md").read_text()

    def taken_out(proxy, text, port):
        row = rf"^\| {proxy.name} \| `([^`]+)` \| `kill -{proxy.reload.removeprefix('SIG')}` \|"
        word = re.search(row, document, re.MULTILINE | re.IGNORECASE)[1]
        without, lines = re.subn(rf"(?m)^( .*:{port}\b.*?)(;?)$", rf"\1 {word}\2", text)
        assert lines == 1
        return without

    return taken_out


@pytest.fixture(scope="session")
def fronts(tmp_path_factory, installed):
    """Every proxy in front of four Daphnes, each with a socket on which nothing was said yet."""
    for name in PROXIES:
        installed(Variant("gunicorn", proxy=name))
    with ExitStack() as stack:
        found = Fronts(stack)
        application = [found.serve(tmp_path_factory.mktemp("daphne")) for _ in range(PROCESSES)]
        for proxy in PROXIES.values():
            folder = tmp_path_factory.mktemp(proxy.name)
            found.urls[proxy.name] = found.put_in_front(proxy, application, folder)
        found.open_idle_sockets()
        yield found


class Fronts:
    """``urls`` and ``idle`` by proxy; ``close`` ends it all, once."""

    def __init__(self, stack):
        self.urls, self.idle, self.opened_s = {}, {}, None
        self._stack = stack

    def close(self):
        self._stack.close()

    def serve(self, folder):
        """Start a Daphne, with the command line of its variant; return its port."""
        port = free_port()
        command = commands(configuration(BEHIND)["supervisord.conf"])["program:daphne"]
        environ = environment(BEHIND) | {"DJANGO_ALLOWED_HOSTS": HOST}
        self._start(command.replace("%(process_num)d", str(port)), folder, ROOT, environ)
        wait_for(f"http://{HOST}:{port}", folder)
        return port

    def put_in_front(self, proxy, application, folder):
        """Start the proxy, with the command line of its program file; return its URL."""
        folder.chmod(0o755)  # Apache's workers may be another account's
        port = free_port()
        text = proxies.rendered(proxy, port, tuple(application), as_root=os.geteuid() == 0)
        (folder / proxy.file).write_text(text)
        program = (ROOT / "supervisor" / "programs" / f"{proxy.name}.conf").read_text()
        command = commands(program)[f"program:{proxy.name}"]
        self._start(command.replace("%(ENV_DEPLOY_ROOT)s/run", str(folder)), folder, folder, {})
        wait_for(f"http://{HOST}:{port}", folder)
        return f"http://{HOST}:{port}"

    def _start(self, command, folder, directory, environ):
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                shlex.split(command),
                cwd=directory,
                env=os.environ | environ | {"PATH": SEARCH_PATH},
                stdout=log,
                stderr=log,
            )
        self._stack.callback(process.wait, PATIENCE_S)
        self._stack.callback(process.terminate)

    def open_idle_sockets(self):
        for name, url in self.urls.items():
            self.idle[name] = self._stack.enter_context(echo_socket(url))
        self.opened_s = time.monotonic()


def free_port():
    with socket.create_server((HOST, 0)) as listener:
        return listener.getsockname()[1]


def commands(text):
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";",))
    parser.read_string(text)
    return {
        name: parser[name]["command"] for name in parser.sections() if "command" in parser[name]
    }


def wait_for(url, folder):
    until = time.monotonic() + PATIENCE_S
    while not serves(url):
        assert time.monotonic() < until, (folder / "log").read_text()
        time.sleep(0.05)


def serves(url):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_S)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def echo_socket(url, **options):
    """Open an echo socket that sends no pings of its own: what keeps it open is the server."""
    options = {"origin": url, "ping_interval": None, "max_size": None} | options
    address = f"ws{url.removeprefix('http')}/ws/echo/"
    with connect(address, compression=None, proxy=None, **options) as opened:
        yield opened


@pytest.fixture
def open_socket():
    return echo_socket
