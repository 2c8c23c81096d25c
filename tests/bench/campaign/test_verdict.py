from collections.abc import Callable, Sequence

import pytest

from bench.plan import Plan, plan
from bench.records import Campaign, Gate, Sample
from bench.summary import summarize
from bench.variants import CONTROL
from bench.verdict import faults

STOLEN = Gate("steal", ok=False, measured=0.5, limit=0.02, unit="cores", reason="0.5 were stolen")
ADVICE = Gate("capacity", ok=False, measured=9, limit=75, unit="%", reason="idle", advisory=True)


def planned(kind: str = "quick", rounds: int = 2) -> Plan:
    return plan(kind, variants=[CONTROL], tests=["latency"], rounds=rounds, seed=1)


def judged(planned: Plan, samples: Sequence[Sample]) -> list[str]:
    campaign = Campaign(
        name="name",
        kind=planned.kind,
        started="2026-11-21T12:00:00+00:00",
        finished="2026-11-21T12:05:00+00:00",
        rounds=planned.rounds,
        control=planned.control.name,
        twin=planned.twin.name,
        arms={arm.name: arm.variant.factors() for arm in planned.arms},
        tests=tuple(test.test for test in planned.tests),
        configurations={},
        provenance={},
    )
    return faults(summarize(campaign, samples))


@pytest.fixture
def complete(make_sample: Callable[..., Sample]) -> Callable[..., list[Sample]]:
    """Returns a function that makes a valid sample of every cell of a plan."""

    def make(planned: Plan, **changes: object) -> list[Sample]:
        return [
            make_sample(arm=arm.name, test=test.test, round=round_, **changes)
            for round_ in range(1, planned.rounds + 1)
            for arm, test in planned.cells()
        ]

    return make


def test_complete_campaign_has_no_faults(complete: Callable[..., list[Sample]]) -> None:
    assert judged(planned(), complete(planned())) == []


def test_figure_that_is_no_capacity_is_no_fault(complete: Callable[..., list[Sample]]) -> None:
    assert judged(planned(), complete(planned(), gates=(ADVICE,))) == []


def test_attempt_that_was_made_good_is_no_fault(
    complete: Callable[..., list[Sample]], make_sample: Callable[..., Sample]
) -> None:
    discarded = make_sample(attempt=1, gates=(STOLEN,))
    assert judged(planned(), [discarded, *complete(planned(), attempt=2)]) == []


def test_cell_without_a_valid_sample_names_the_rounds_and_the_gate(
    complete: Callable[..., list[Sample]], make_sample: Callable[..., Sample]
) -> None:
    samples = [one for one in complete(planned()) if one.arm != "gunicorn"]
    samples += [make_sample(round=round_, gates=(STOLEN, ADVICE)) for round_ in (1, 2)]
    assert judged(planned(), samples) == [
        "gunicorn, latency: no valid sample in rounds 1, 2: steal (0.5 were stolen)"
    ]


def test_variant_that_failed_says_why(
    complete: Callable[..., list[Sample]], make_sample: Callable[..., Sample]
) -> None:
    samples = [one for one in complete(planned()) if (one.arm, one.round) != ("gunicorn", 2)]
    samples.append(make_sample(round=2, load=None, failure="redis-server is missing"))
    assert judged(planned(), samples) == [
        "gunicorn, latency: no valid sample in round 2: redis-server is missing"
    ]


def test_tests_that_lack_the_same_for_the_same_reason_share_a_sentence(
    make_sample: Callable[..., Sample],
) -> None:
    want = plan("quick", variants=[CONTROL], tests=["latency", "throughput"], rounds=1, seed=1)
    samples = [
        make_sample(arm=arm.name, test=test.test, load=None, failure="nginx is missing")
        for arm, test in want.cells()
    ]
    assert judged(want, samples) == [
        f"{arm}, latency and throughput: no valid sample in round 1: nginx is missing"
        for arm in ("gunicorn", "gunicorn (again)")
    ]


def test_round_that_was_never_measured_is_a_fault(complete: Callable[..., list[Sample]]) -> None:
    first = [one for one in complete(planned()) if one.round == 1]
    assert judged(planned(), first) == [
        "gunicorn, latency: no valid sample in round 2: not measured",
        "gunicorn (again), latency: no valid sample in round 2: not measured",
    ]


@pytest.mark.parametrize(
    ("kind", "rounds", "missing", "wrong"),
    [
        ("full", 10, (4,), False),
        ("full", 10, (4, 7), True),
        ("full", 8, (4,), True),
        ("quick", 3, (1,), False),
        ("quick", 3, (1, 2), True),
    ],
)
def test_one_round_in_ten_may_be_missing_and_of_a_quick_campaign_one_in_three(
    complete: Callable[..., list[Sample]],
    kind: str,
    rounds: int,
    missing: tuple[int, ...],
    wrong: bool,
) -> None:
    want = planned(kind, rounds)
    samples = [one for one in complete(want) if one.arm != "gunicorn" or one.round not in missing]
    assert bool(judged(want, samples)) is wrong


@pytest.mark.parametrize(("kind", "rounds"), [("quick", 3), ("full", 10)])
@pytest.mark.parametrize(("twin_us", "apart"), [(3000, True), (2040, False)])
def test_twins_apart_are_a_fault(
    complete: Callable[..., list[Sample]],
    make_load: Callable[..., object],
    payload: Callable[[Sequence[int]], str],
    kind: str,
    rounds: int,
    twin_us: int,
    apart: bool,
) -> None:
    want = planned(kind, rounds)
    control = [one for one in complete(want) if one.arm == want.control.name]
    slower = make_load(latency_us=payload([twin_us] * 3000))
    twin = [one for one in complete(want, load=slower) if one.arm == want.twin.name]
    found = judged(want, [*control, *twin])
    assert bool(found) is apart
    assert all(one.startswith("A/A pair: gunicorn (again) has 1.50 times the p") for one in found)
