from collections import Counter

import pytest

from bench.errors import BadInput
from bench.plan import QUICK_BUDGET_S, plan
from bench.variants import VARIANTS


def test_quick_campaign_leaves_a_quarter_of_its_six_minutes_for_reruns() -> None:
    quick = plan("quick", seed=1)
    assert quick.budget_s == QUICK_BUDGET_S == 360
    assert quick.total_s() < 0.75 * quick.budget_s
    assert [test.test for test in quick.tests] == ["latency", "throughput", "relay"]


def test_full_campaign_has_the_rounds_an_interval_needs_and_takes_90_minutes() -> None:
    full = plan("full", seed=1)
    assert full.rounds == 16
    assert full.budget_s is None
    assert 60 * 60 < full.total_s() < 90 * 60
    assert full.seconds["minute"] == 60


def test_full_campaign_searches_for_the_capacity_in_as_few_rounds_as_make_an_interval() -> None:
    full = plan("full", seed=1)
    by_round = [{test.test for _, test in full.cells(round_)} for round_ in range(1, 17)]
    assert ["capacity" in tests for tests in by_round] == [True] * 6 + [False] * 10
    assert ["minute" in tests for tests in by_round] == [True] * 3 + [False] * 13
    assert all("latency" in tests for tests in by_round)
    assert full.total_s() == sum(full.round_s(round_) for round_ in range(1, 17))
    assert full.round_s(3) > full.round_s(4) > full.round_s(7) == full.round_s(16)
    assert {"capacity", "minute"}.isdisjoint(test.test for test in full.tests_of(full.twin, 1))


def test_rounds_of_a_short_test_are_few_beside_others_and_all_on_its_own() -> None:
    beside = plan("full", tests=["relay", "minute"], rounds=6, seed=1)
    assert [beside.rounds_of(test) for test in beside.tests] == [6, 3]
    alone = plan("full", tests=["minute", "capacity"], rounds=7, seed=1)
    assert [alone.rounds_of(test) for test in alone.tests] == [7, 7]


def test_control_runs_twice_in_every_round() -> None:
    planned = plan("quick", seed=1)
    assert [arm.name for arm in planned.arms] == [
        "gunicorn",
        "gunicorn (again)",
        "daphne-redis",
        "daphne-ipc",
    ]
    assert planned.twin.variant == planned.control.variant


@pytest.mark.parametrize(
    ("names", "control"),
    [(("daphne-ipc", "gunicorn"), "gunicorn"), (("daphne-ipc", "uvicorn-ipc"), "daphne-ipc")],
)
def test_control_is_gunicorn_or_else_the_first_variant(
    names: tuple[str, ...], control: str
) -> None:
    planned = plan("quick", variants=[VARIANTS[name] for name in names], seed=1)
    assert (planned.control.name, planned.twin.name) == (control, f"{control} (again)")


def test_variant_named_twice_runs_once() -> None:
    twice = [VARIANTS["gunicorn"], VARIANTS["daphne-ipc"], VARIANTS["daphne-ipc"]]
    assert len(plan("quick", variants=twice, seed=1).arms) == 3


def test_order_is_shuffled_by_round_and_repeated_by_seed() -> None:
    planned = plan("full", seed=7)
    orders = [tuple(arm.name for arm in planned.order(round_)) for round_ in range(1, 11)]
    assert all(Counter(order) == Counter(arm.name for arm in planned.arms) for order in orders)
    assert len(set(orders)) > 4
    again = plan("full", seed=7)
    assert orders == [tuple(arm.name for arm in again.order(round_)) for round_ in range(1, 11)]
    other = plan("full", seed=8)
    assert orders != [tuple(arm.name for arm in other.order(round_)) for round_ in range(1, 11)]


def test_relay_is_measured_only_where_there_is_a_worker() -> None:
    cells = {(arm.name, test.test) for arm, test in plan("quick", seed=1).cells()}
    assert ("daphne-ipc", "relay") in cells
    assert ("gunicorn", "relay") not in cells


def test_what_was_asked_for_takes_the_time_it_takes() -> None:
    planned = plan("quick", rounds=20, seconds=9, tests=("latency",), seed=1)
    assert planned.budget_s is None
    assert (planned.rounds, dict(planned.seconds)) == (20, {"latency": 9})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rounds": 0}, "--rounds 0 measures nothing"),
        ({"seconds": -3}, "--seconds -3 measures nothing"),
        ({"seconds": 2}, "--seconds 2 is too short for a 99th percentile of latency: give 4"),
        ({"tests": ("latncy",)}, "did you mean latency"),
        (
            {"tests": ("relay",), "variants": [VARIANTS["gunicorn"]]},
            "relay runs on none of gunicorn, .* add a variant with a worker",
        ),
        (
            {"tests": ("echo",), "variants": [VARIANTS["gunicorn"]]},
            "add a variant with an ASGI server",
        ),
    ],
)
def test_plan_of_nothing_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        plan("quick", seed=1, **wrong)  # type: ignore[arg-type]
