"""Cells really measured, briefly: on the layers themselves, and where something is wrong."""

from collections.abc import Iterator

import pytest

from bench.layers import cell as module
from bench.layers import services
from bench.layers.cell import measured
from bench.layers.measures import MEASURES
from bench.layers.peers import PEERS, Peer, Places


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Places, int]]:
    with services.running() as found:
        yield found


@pytest.mark.parametrize("measure", [name for name in MEASURES if "x4" not in name])
def test_cell_counts_every_message_of_ipc(running: tuple[Places, int], measure: str) -> None:
    found = measured(MEASURES[measure], PEERS["ipc"], *running, 0.3, 1)
    assert found.failure is None
    assert found.figures[MEASURES[measure].figure] is not None
    if measure != "idle":
        assert found.sent > 0
        assert (found.received, found.lost, found.duplicates) == (found.sent, 0, 0)


@pytest.mark.redis
@pytest.mark.parametrize("peer", ["redis", "redis_tcp", "redis_pubsub", "redis_pubsub_tcp"])
def test_cell_of_redis_counts_the_server_in(running: tuple[Places, int], peer: str) -> None:
    found = measured(MEASURES["outstanding_32"], PEERS[peer], *running, 0.3, 1)
    assert found.failure is None
    assert found.sent == found.received > 0
    assert found.cpu_us_per_message > 0


@pytest.mark.parametrize(
    ("measure", "peer"),
    [("group_100_x1", "inmemory"), ("one_way", "inmemory"), ("round_trip_uvloop", "raw")],
)
def test_cell_of_a_bound_is_measured(running: tuple[Places, int], measure: str, peer: str) -> None:
    found = measured(MEASURES[measure], PEERS[peer], *running, 0.3, 1)
    assert found.failure is None
    assert found.received == found.sent > 0


def test_cell_whose_process_fails_says_why(running: tuple[Places, int]) -> None:
    wrong = Peer("wrong", "A layer that is not there", "no.such.Layer")
    found = measured(MEASURES["round_trip"], wrong, *running, 0.3, 1)
    assert "No module named 'no'" in found.failure
    assert found.figures == {}
    assert found.lost is None


def test_cell_of_asgi_ipc_without_its_environment_names_the_command(
    running: tuple[Places, int], monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setattr(module, "CHANNELS1_PYTHON", tmp_path / "python")
    found = measured(MEASURES["outstanding_32"], PEERS["asgi_ipc"], *running, 0.3, 1)
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
