from collections import Counter
from itertools import pairwise

import pytest

from bench.errors import BadInput
from bench.layers import rounds
from bench.layers.cell import Cell
from bench.layers.measures import MEASURES
from bench.layers.peers import PEERS, Places, config
from bench.layers.placement import placed


def planned(**changes: object) -> rounds.Plan:
    asked = {"measures": (), "peers": (), "rounds": None, "quick": False, "seed": 7} | changes
    return rounds.plan(**asked)


def test_plan_without_names_has_every_measure_on_every_peer_it_is_for() -> None:
    cells = {(measure.name, peer.name) for measure, peer in planned().cells()}
    assert cells == {(one.name, peer) for one in MEASURES.values() for peer in one.peers}


def test_order_has_each_cell_once_and_differs_between_rounds() -> None:
    plan = planned()
    orders = [[(one.name, peer.name) for one, peer in plan.order(number)] for number in range(1, 5)]
    for order in orders:
        assert Counter(order) == Counter((one.name, peer.name) for one, peer in plan.cells())
    assert len({tuple(order) for order in orders}) == 4


def test_order_keeps_the_peers_of_a_measure_together() -> None:
    names = [measure.name for measure, _ in planned().order(1)]
    changes = sum(before != after for before, after in pairwise(names))
    assert changes == len(MEASURES) - 1


def test_order_can_be_had_again_from_the_seed() -> None:
    assert planned(seed=3).order(2) == planned(seed=3).order(2)
    assert planned(seed=3).order(2) != planned(seed=4).order(2)


def test_quick_plan_is_shorter() -> None:
    quick, full = planned(quick=True), planned()
    assert quick.rounds < full.rounds
    assert full.rounds >= 10
    assert all(quick.duration_s(one) < full.duration_s(one) for one in MEASURES.values())


def test_full_plan_takes_35_minutes_at_most() -> None:
    assert planned().estimate_s() < 35 * 60


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"measures": ("round_tripp",)}, "did you mean round_trip"),
        ({"peers": ("redsi",)}, "did you mean redis"),
        ({"rounds": 0}, "--rounds 0 measures nothing"),
        ({"measures": ("idle",), "peers": ("raw",)}, "no measure of idle is for raw: idle is for"),
        ({"peers": ("raw",), "measures": ("one_way",)}, "one_way is for ipc"),
    ],
    ids=str,
)
def test_plan_of_what_cannot_be_measured_says_what_can(changes: dict, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        planned(**changes)


def test_redis_never_times_out_an_idle_read(tmp_path) -> None:
    places = Places(tmp_path / "ipc", tmp_path / "redis.sock", 4321)
    redis = [peer for peer in PEERS.values() if peer.transport]
    assert len(redis) == 4
    for peer in redis:
        (host,) = config(peer, places)["hosts"]
        assert host["socket_timeout"] is None
        assert host["address"] in (f"unix://{places.redis_socket}", "redis://127.0.0.1:4321")


@pytest.mark.parametrize("placement", ["together", "apart", "beside", "anywhere"])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_processes_of_every_layer_are_placed_within_the_usable(
    placement: str, processes: int
) -> None:
    for cpus in ((3,), (2, 5), (0, 1, 2, 3)):
        found = placed(placement, processes, cpus)
        assert len(found) == processes
        assert all(set(one) <= set(cpus) for one in found)


def test_both_ends_are_apart_where_both_work() -> None:
    assert placed("apart", 2, (0, 1)) == [(1,), (0,)]
    assert placed("together", 2, (0, 1)) == [(1,), (1,)]
    assert placed("beside", 3, (0, 1)) == [(1,), (1,), (0,)]


def test_done_is_what_counts_has_failed_or_was_tried_often() -> None:
    cells = [
        Cell("idle", "ipc", 1),
        Cell("idle", "ipc", 2, discarded=("noise",)),
        Cell("idle", "ipc", 3, failure="it ended"),
        Cell("idle", "ipc", 4, discarded=("noise",), attempt=rounds.ATTEMPTS),
    ]
    assert rounds.done(cells) == {(number, "idle", "ipc") for number in (1, 3, 4)}
