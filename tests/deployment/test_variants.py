"""What holds for every variant that really runs."""

import asyncio
import subprocess

import pytest

from bench import ports
from bench.contract import violations
from bench.control import programs
from bench.environment import BACKLOG, HOST
from bench.supervise import tree

pytestmark = pytest.mark.server
CLIENTS = 128  # as many as the framework baseline had at most


def test_variant_keeps_the_endpoint_contract(deployment):
    assert violations(deployment.base_url, deployment.variant) == []


def test_variant_serves_128_connections_of_the_same_moment(deployment):
    """None is refused or reset: Daphne's own backlog of 50 would drop some."""
    replies = asyncio.run(replies_to(CLIENTS, ports.front(deployment.variant)))
    assert [reply[:13] for reply in replies] == [b"HTTP/1.1 200 "] * CLIENTS
    assert all(reply.endswith(b"OK") for reply in replies)


async def replies_to(clients, port):
    return await asyncio.gather(*(reply_to_one(port) for _ in range(clients)))


async def reply_to_one(port):
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    reply = await asyncio.wait_for(reader.read(), timeout=30)
    writer.close()
    return reply


def test_variant_listens_with_the_backlog_it_was_told(deployment):
    """What the kernel says, for 128 connections at once may be lucky."""
    variant = deployment.variant
    for port in {ports.front(variant), *ports.application(variant)}:
        assert backlogs(port) == {BACKLOG}, port


def backlogs(port):
    """Return the backlog of each socket that listens on ``port``: `ss` shows it as Send-Q."""
    lines = subprocess.run(
        ["ss", "--listening", "--tcp", "--numeric", "--no-header", f"sport = :{port}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return {int(line.split()[2]) for line in lines}


def test_variant_is_started_by_supervisord_in_the_group_of_2016(deployment):
    variant = deployment.variant
    names = {(one["group"], one["name"].rstrip("_0123456789")) for one in programs()}
    assert (variant.group, variant.server) in names
    assert {name for _, name in names} <= {variant.server, variant.proxy, "worker", "redis"}
    assert len([one for one in programs() if one["name"].startswith("worker_")]) == variant.workers


def test_variant_writes_no_line_for_a_request_that_went_well(deployment):
    before = deployment.log_tail(1000)
    asyncio.run(replies_to(1, ports.front(deployment.variant)))
    assert deployment.log_tail(1000) == before


def test_variant_runs_in_one_process_tree(deployment):
    assert deployment.identity["pid"] in tree(deployment.pid)
