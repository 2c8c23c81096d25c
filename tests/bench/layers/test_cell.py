"""Cells really measured, briefly: on the layers themselves, and where something is wrong."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bench.layers import cell as module
from bench.layers import services
from bench.layers.cell import Stage, measured
from bench.layers.measures import MEASURES
from bench.layers.peers import PEERS, Peer


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with services.running() as (places, redis_pid):
        yield Stage(places, redis_pid)


@pytest.mark.parametrize("measure", MEASURES)
def test_cell_counts_every_message_of_ipc(stage: Stage, measure: str) -> None:
    found = measured(MEASURES[measure], PEERS["ipc"], stage, 0.3, 1)
    assert found.failure is None
    assert found.figures[MEASURES[measure].figure] is not None
    if measure != "idle":
        assert found.sent > 0
        assert (found.received, found.lost, found.duplicates) == (found.sent, 0, 0)


@pytest.mark.redis
@pytest.mark.parametrize("peer", ["redis", "redis_pubsub"])
def test_group_in_four_processes_gets_everything_from_redis(stage: Stage, peer: str) -> None:
    found = measured(MEASURES["group_100_x4"], PEERS[peer], stage, 0.3, 1)
    assert found.failure is None
    assert (found.received, found.lost, found.duplicates) == (found.sent, 0, 0)
    assert found.sent > 0


@pytest.mark.redis
def test_one_way_over_pubsub_is_paced_so_that_nothing_is_lost(stage: Stage) -> None:
    found = measured(MEASURES["one_way"], PEERS["redis_pubsub"], stage, 0.3, 1)
    assert found.failure is None
    assert (found.received, found.lost, found.duplicates) == (found.sent, 0, 0)
    assert found.sent >= MEASURES["one_way"].options["lot"]


@pytest.mark.timing
def test_paced_messages_leave_on_time(stage: Stage) -> None:
    found = measured(MEASURES["round_trip_300"], PEERS["ipc"], stage, 0.5, 1)
    assert found.sent == 150
    assert found.figures["lag_p50_us"] < found.figures["p50_us"]


@pytest.mark.redis
@pytest.mark.parametrize("peer", ["redis", "redis_tcp", "redis_pubsub", "redis_pubsub_tcp"])
def test_cell_of_redis_counts_the_server_in(stage: Stage, peer: str) -> None:
    found = measured(MEASURES["outstanding_32"], PEERS[peer], stage, 0.3, 1)
    assert found.failure is None
    assert found.sent == found.received > 0
    assert found.cpu_us_per_message > 0


@pytest.mark.parametrize(
    ("measure", "peer"),
    [
        ("group_100_x1", "inmemory"),
        ("one_way", "inmemory"),
        ("round_trip_uvloop", "raw"),
        ("round_trip_300", "raw"),
        ("round_trip_300_shared", "raw"),
    ],
)
def test_cell_of_a_bound_is_measured(stage: Stage, measure: str, peer: str) -> None:
    found = measured(MEASURES[measure], PEERS[peer], stage, 0.3, 1)
    assert found.failure is None
    assert found.received == found.sent > 0


def test_cell_whose_process_fails_says_why(stage: Stage) -> None:
    wrong = Peer("wrong", "A layer that is not there", "no.such.Layer")
    found = measured(MEASURES["round_trip"], wrong, stage, 0.3, 1)
    assert "No module named 'no'" in found.failure
    assert found.figures == {}
    assert found.lost is None


def test_cell_of_asgi_ipc_without_its_environment_names_the_command(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setattr(module, "CHANNELS1_PYTHON", tmp_path / "python")
    found = measured(MEASURES["outstanding_32"], PEERS["asgi_ipc"], stage, 0.3, 1)
    assert "make channels1-env" in found.failure


def test_cell_adds_up_the_parts_of_a_group() -> None:
    figures = {
        "group_sender": [{"sent": 200, "deliveries_per_s": 1000.0}],
        "group_member": [
            {"deliveries": 100, "duplicates": 1},
            {"deliveries": 90, "duplicates": 0},
        ],
    }
    found = module.cell(MEASURES["group_100_x2"], PEERS["redis"], 1, figures, 0.019)
    assert (found.sent, found.received, found.lost, found.duplicates) == (200, 190, 10, 1)
    assert found.figures == {"deliveries_per_s": 1000.0}
    assert found.cpu_us_per_message == pytest.approx(100)


def test_cell_leaves_warming_up_out_of_the_messages_but_not_of_their_cost() -> None:
    figures = {"ping": [{"sent": 70, "received": 70, "duplicates": 0, "warm_up": 30}], "echo": [{}]}
    found = module.cell(MEASURES["round_trip"], PEERS["ipc"], 1, figures, 0.0001)
    assert (found.sent, found.received) == (70, 70)
    assert found.cpu_us_per_message == pytest.approx(1)
    assert found.figures == {}


BUSY = """
import time
print("busy", flush=True)
end = time.monotonic() + 20
while time.monotonic() < end:
    pass
"""


def test_cell_beside_another_busy_process_is_discarded_with_the_reason(stage: Stage) -> None:
    """Started by a child that ends at once, so that it is none of ours."""
    starter = (
        "import subprocess, sys;"
        "print(subprocess.Popen([sys.executable, '-c', sys.argv[1]],"
        " start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)"
    )
    started = subprocess.run(
        [sys.executable, "-c", starter, BUSY], capture_output=True, text=True, check=True
    )
    try:
        found = measured(MEASURES["round_trip"], PEERS["ipc"], stage, 0.5, 1)
    finally:
        os.kill(int(started.stdout), signal.SIGKILL)
    assert any("other processes used" in reason for reason in found.discarded)
    assert found.figures["p50_us"] is not None
    assert not found.counts


def test_lag_of_a_late_generator_is_a_reason() -> None:
    late = module.lag({"lag_p50_us": 20.0, "p50_us": 100.0})
    assert not late.ok
    assert "20 us late" in late.reason
    assert module.lag({"lag_p50_us": 3.0, "p50_us": 100.0}).ok
