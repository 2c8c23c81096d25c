"""The other variants in containers, each in an engine of its own: make swarm-test."""

import signal
import subprocess
import sys

import psutil
import pytest

from bench.contract import violations
from bench.environment import ROOT
from bench.supervise import deployed
from bench.variants import SWARM_VARIANTS

pytestmark = [pytest.mark.swarm, pytest.mark.timeout(900)]

# Prints the pid at the root of an engine's processes, and waits to be killed.
OWNER = """
from bench.swarm.engine import engine
with engine() as ours:
    print(ours.pid, flush=True)
    input()
"""


@pytest.mark.parametrize("name", ["daphne-redis-swarm-x4", "gunicorn-swarm-x4"])
def test_variant_on_one_processor_keeps_the_contract(name, untouched):
    variant = SWARM_VARIANTS[name]
    with deployed(variant, cpus=[0]) as deployment:
        assert violations(deployment.base_url, variant) == []
        assert deployment.identity["server"] == variant.server
        below = psutil.Process(deployment.pid).children(recursive=True)
        assert {tuple(process.cpu_affinity()) for process in below} == {(0,)}


def test_engine_whose_owner_is_killed_leaves_nothing(untouched):
    owner = subprocess.Popen(
        (sys.executable, "-c", OWNER),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        keeper = psutil.Process(int(owner.stdout.readline()))
        members = [keeper, *keeper.children(recursive=True)]
        assert {"dockerd", "containerd"} <= {process.name() for process in members}
        owner.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(members, timeout=60)
    assert alive == []
