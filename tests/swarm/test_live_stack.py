"""A stack in a real engine: make swarm-test. Everything on loopback, in an engine of its own."""

import time

import psutil
import pytest

from bench.contract import violations
from bench.load import LoadSpec, running
from bench.swarm import deployment
from bench.variants import SWARM_VARIANTS

pytestmark = [pytest.mark.swarm, pytest.mark.timeout(900)]

UVICORN = SWARM_VARIANTS["uvicorn-redis-swarm-x4"]
SCALED_S = 90.0  # eight Pythons that start at once


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


def test_stack_is_not_run_by_root_and_none_of_it_is_published_elsewhere(stack):
    members = psutil.Process(stack.engine.pid).children(recursive=True)
    servers = [one for one in members if "uvicorn" in " ".join(one.cmdline())]
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
