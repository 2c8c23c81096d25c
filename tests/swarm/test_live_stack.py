"""A stack in a real engine: make swarm-test. Everything on loopback, in an engine of its own."""

import contextlib
import http.client
import json
import time
from pathlib import Path

import psutil
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from bench.contract import violations
from bench.load import LoadSpec, running
from bench.proxies import BODY_BYTES
from bench.swarm import deployment
from bench.variants import SWARM_VARIANTS

pytestmark = [pytest.mark.swarm, pytest.mark.timeout(900)]

UVICORN = SWARM_VARIANTS["uvicorn-redis-swarm-x4"]
SCALED_S = 90.0  # eight Pythons that start at once
PATIENCE_S = 30.0
IDLE_S = 130.0  # longer than the 120 s that swarm/haproxy.cfg lets a silent tunnel stay open
SOCKETS = 64


@pytest.fixture(scope="module")
def stack(untouched):
    """A stack of four uvicorns that is ready."""
    with deployment.running(UVICORN) as (ready, _):
        yield ready


def echoed(stack, duration_s):
    address = stack.base_url.replace("http", "ws") + "/ws/echo/"
    return LoadSpec("echo", "open", address, duration_s=duration_s, rate_rps=100)


def test_stack_keeps_the_contract(stack):
    assert violations(stack.base_url, UVICORN) == []


def test_stack_gives_every_message_back(stack):
    with running(echoed(stack, 10)) as generator:
        load = generator.result()
    assert (load.sent, load.ok, load.error_kinds) == (1000, 1000, {})
    verdicts = load.counters
    assert verdicts["good"] > 0
    assert not any(count for kind, count in verdicts.items() if kind != "good")


def opened(stack, origin):
    return connect(
        f"{stack.base_url.replace('http', 'ws')}/ws/echo/",
        origin=origin,
        compression=None,
        proxy=None,
        ping_interval=None,  # so it is the servers' pings that keep it open
    )


def asked(stack, method, path, headers):
    """Return the status and the body of the answer to a request that sends no more than headers."""
    address = stack.base_url.removeprefix("http://")
    with contextlib.closing(http.client.HTTPConnection(address, timeout=PATIENCE_S)) as client:
        client.request(method, path, headers=headers)
        response = client.getresponse()
        return response.status, response.read()


def servers_of(stack):
    """Return the application server of each container."""
    found = []
    for one in psutil.Process(stack.engine.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # as a check of its health
            if "uvicorn" in " ".join(one.cmdline()):
                found.append(one)
    return found


def connections_to(server):
    """How many connections to port 8000 are open where ``server`` is: in its container."""
    counts = []
    for _ in range(5):  # the least, for a check of its health is not always there
        lines = Path(f"/proc/{server.pid}/net/tcp").read_text().splitlines()[1:]
        rows = map(str.split, lines)
        counts.append(sum(row[1].endswith(":1F40") and row[3] == "01" for row in rows))
        time.sleep(0.3)
    return min(counts)


def test_stack_believes_nothing_that_a_client_says_of_itself(stack):
    lies = {
        "X-Forwarded-For": "203.0.113.7",
        "X_Forwarded_For": "203.0.113.8",
        "X-Forwarded-Proto": "https",
        "X-Real-IP": "203.0.113.9",
        "Forwarded": "for=203.0.113.10;proto=https",
    }
    seen = [
        json.loads(asked(stack, "GET", "/healthz", headers)[1])["client"] for headers in (lies, {})
    ]
    assert "203.0.113" not in str(seen)
    assert [client["scheme"] for client in seen] == ["http", "http"]
    assert seen[0] == seen[1]
    assert seen[0]["forwarded_for"] == seen[0]["address"]


def test_stack_answers_a_body_above_its_limit_with_413(stack):
    declared = {"Content-Length": str(BODY_BYTES + 1)}
    assert asked(stack, "POST", "/digest/", declared)[0] == 413


def test_stack_refuses_a_foreign_origin(stack):
    with pytest.raises(InvalidStatus, match="403"), opened(stack, "http://elsewhere.example"):
        pytest.fail("it opened")


def test_sockets_are_spread_evenly_and_open_after_two_idle_minutes(stack):
    with contextlib.ExitStack() as sockets:
        clients = [sockets.enter_context(opened(stack, stack.base_url)) for _ in range(SOCKETS)]
        time.sleep(IDLE_S)  # so the connections that haproxy keeps for requests are gone, too
        counts = sorted(map(connections_to, servers_of(stack)))
        for client in clients:
            client.send("still here")
            assert client.recv(timeout=PATIENCE_S) == "still here"
    assert len(counts) == UVICORN.processes
    assert all(14 <= count <= 18 for count in counts), counts


def test_stack_is_not_run_by_root_and_none_of_it_is_published_elsewhere(stack):
    members = psutil.Process(stack.engine.pid).children(recursive=True)
    servers = servers_of(stack)
    assert len(servers) == UVICORN.processes  # so the sampler sees them, too
    assert all(min(one.uids()) > 0 for one in servers)
    pids = {one.pid for one in members}
    listening = [one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert {one.laddr.ip for one in listening if one.pid in pids} == {"127.0.0.1"}


def test_stack_is_scaled_to_eight_and_back_without_losing_a_request(stack):
    request = LoadSpec("latency", "open", f"{stack.base_url}/", duration_s=60, rate_rps=50)
    _, known = stack.wait(4, SCALED_S)
    with running(request) as requests, running(echoed(stack, 60)) as echoes:
        time.sleep(5)
        stack.scale(8)
        stack.wait(8, SCALED_S, known)
        time.sleep(5)
        stack.scale(4)
        stack.wait(4, SCALED_S, known)
        replies, messages = requests.result(), echoes.result()
    assert (replies.ok, replies.error_kinds) == (replies.scheduled, {}), stack.log_tail()
    assert (messages.ok, messages.error_kinds) == (messages.scheduled, {}), stack.log_tail()


def test_stack_loses_no_request_to_a_container_that_is_killed(stack):
    request = LoadSpec("latency", "open", f"{stack.base_url}/", duration_s=20, rate_rps=50)
    with running(request) as requests:
        time.sleep(5)
        label = "label=com.docker.swarm.service.name=channels_web"
        victim = stack.engine.docker("ps", "--quiet", "--filter", label).split()[0]
        stack.engine.docker("kill", "--signal", "KILL", victim)
        load = requests.result()
    stack.wait(4, SCALED_S)
    # A request that the container was working on may be lost: GET is repeated, so none is.
    assert (load.ok, load.error_kinds) == (load.scheduled, {}), stack.log_tail()
