"""The order of a campaign and what becomes of failures, on deployments made up in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from bench.campaign import ATTEMPTS, RESTS_S, Failed, Measurement, Pace, Run
from bench.plan import Arm, Plan, plan
from bench.records import Gate, Sample
from bench.variants import HEADLINE, Variant
from bench.workloads import Workload

GOOD = Gate("steal", ok=True, measured=0.0, limit=0.02, unit="cores", reason="")
BAD = Gate("steal", ok=False, measured=0.5, limit=0.02, unit="cores", reason="stolen")


@dataclass
class World:
    """Deployments, a clock that only they move, and a diary of what was asked of them.

    ``outcomes``: variant and test -> what the attempts come to, in their order; the last one stays.
    """

    measurement: Callable[..., Measurement]
    broken: set[str] = field(default_factory=set)  # do not start
    breaches: dict[str, list[str]] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], list[Gate | BaseException]] = field(default_factory=dict)
    slowness: float = 1.0
    now_s: float = 0.0
    diary: list[str] = field(default_factory=list)
    running: int = 0
    rests_s: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.rests_s.append(seconds)
        self.now_s += seconds

    @contextmanager
    def deployed(self, variant: Variant) -> Iterator["One"]:
        self.now_s += 4 * self.slowness
        if variant.name in self.broken:
            raise Failed(f"{variant.name} did not start", "its last words")
        self.diary.append(f"start {variant.name}")
        self.running += 1
        try:
            yield One(self, variant)
        finally:
            self.running -= 1
            self.diary.append(f"stop {variant.name}")


@dataclass
class One:
    world: World
    variant: Variant

    @property
    def identity(self) -> dict[str, Any]:
        return {"server": self.variant.server}

    def violations(self) -> list[str]:
        self.world.diary.append(f"contract {self.variant.name}")
        return self.world.breaches.get(self.variant.name, [])

    def log_tail(self) -> str:
        return "the end of its log"

    def measure(self, test: Workload, *, duration_s: float, warmup_s: float) -> Measurement:
        self.world.now_s += (1 + warmup_s + duration_s) * self.world.slowness
        self.world.diary.append(f"measure {self.variant.name} {test.test}")
        left = self.world.outcomes.get((self.variant.name, test.test), [GOOD])
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return self.world.measurement(outcome)


class Silent:
    """Watches without a word, but remembers what was skipped and how far it was."""

    def __init__(self) -> None:
        self.skips: list[str] = []
        self.shares: list[float] = []

    def starting(self, round_: int, arm: Arm) -> None: ...
    def measuring(self, round_: int, arm: Arm, test: Workload, attempt: int) -> None: ...
    def kept(self, sample: Sample) -> None: ...
    def progressed(self, share: float, left_s: float) -> None:
        self.shares.append(share)

    def skipped(self, what: str, why: str) -> None:
        self.skips.append(f"{what}: {why}")


@pytest.fixture
def world(make_sample: Callable[..., Sample]) -> World:
    sample = make_sample()

    def measurement(gate: Gate) -> Measurement:
        assert sample.load
        assert sample.server
        assert sample.generator
        assert sample.machine
        return Measurement(
            sample.load, sample.server, sample.generator, sample.machine, (gate,), ("locust",)
        )

    return World(measurement)


@dataclass
class Result:
    samples: list[Sample]
    watcher: Silent
    rounds_done: int


def run(world: World, planned: Plan) -> Result:
    result = Result([], Silent(), 0)
    campaign = Run(
        "name", planned, world, result.samples.append, result.watcher, world.clock, world.sleep
    )
    try:
        campaign.go()
    finally:
        result.rounds_done = campaign.rounds_done
    return result


def test_campaign_measures_every_cell_once_a_round(world: World) -> None:
    planned = plan("quick", rounds=4, seed=3)
    samples = run(world, planned).samples
    expected = {
        (arm.name, test.test, round_) for arm, test in planned.cells() for round_ in range(1, 5)
    }
    assert {(one.arm, one.test, one.round) for one in samples} == expected
    assert len(samples) == len(expected)
    assert all(one.valid and one.attempt == 1 for one in samples)


def test_campaign_takes_the_arms_in_the_order_of_the_plan(world: World) -> None:
    planned = plan("quick", rounds=3, seed=3)
    run(world, planned)
    started = [entry.removeprefix("start ") for entry in world.diary if entry.startswith("start ")]
    assert started == [arm.variant.name for round_ in (1, 2, 3) for arm in planned.order(round_)]


def test_campaign_runs_one_deployment_at_a_time_and_leaves_none(world: World) -> None:
    run(world, plan("quick", seed=3))
    edges = [entry.split()[0] for entry in world.diary if entry.startswith(("start", "stop"))]
    assert edges == ["start", "stop"] * (len(edges) // 2)


def test_campaign_checks_the_contract_once_a_variant_and_before_it_measures(world: World) -> None:
    run(world, plan("quick", seed=3))
    for variant in HEADLINE:
        about = [entry for entry in world.diary if entry.split()[1] == variant.name]
        assert about[1] == f"contract {variant.name}"
        assert about.count(f"contract {variant.name}") == 1


def test_sample_that_does_not_count_is_taken_again_and_kept(world: World) -> None:
    world.outcomes["daphne-ipc", "relay"] = [BAD, BAD, GOOD]
    samples = run(world, plan("quick", rounds=1, seed=3)).samples
    relay = [one for one in samples if (one.arm, one.test) == ("daphne-ipc", "relay")]
    assert [(one.attempt, one.valid) for one in relay] == [(1, False), (2, False), (3, True)]


def test_sample_is_taken_again_three_times_at_most(world: World) -> None:
    world.outcomes["gunicorn", "latency"] = [BAD]
    samples = run(world, plan("quick", rounds=1, seed=3)).samples
    latency = [one for one in samples if (one.arm, one.test) == ("gunicorn", "latency")]
    assert [one.attempt for one in latency] == [1, 2, 3, 4]
    assert ATTEMPTS == 4


def test_full_campaign_rests_before_it_tries_again_and_a_quick_one_does_not(world: World) -> None:
    world.outcomes["gunicorn", "latency"] = [BAD]
    run(world, plan("quick", rounds=1, seed=3))
    assert sum(world.rests_s) == 0
    run(world, plan("full", rounds=1, tests=("latency",), seed=3))
    assert [one for one in world.rests_s if one] == [*RESTS_S[1:]] * 2  # the twin's too


def test_load_that_failed_is_tried_again_and_kept_with_its_log(world: World) -> None:
    world.outcomes["daphne-redis", "latency"] = [Failed("it hung", "its log"), GOOD]
    samples = run(world, plan("quick", rounds=1, seed=3)).samples
    first, second = [one for one in samples if (one.arm, one.test) == ("daphne-redis", "latency")]
    assert (first.failure, first.log_tail, first.load) == ("it hung", "its log", None)
    assert second.valid


def test_variant_that_does_not_start_is_reported_for_every_test_and_the_rest_goes_on(
    world: World,
) -> None:
    world.broken.add("daphne-redis")
    result = run(world, plan("quick", rounds=1, seed=3))
    failed = [one for one in result.samples if one.failure]
    assert {(one.arm, one.test) for one in failed} == {
        ("daphne-redis", test) for test in ("latency", "throughput", "relay")
    }
    assert {one.log_tail for one in failed} == {"its last words"}
    assert {one.arm for one in result.samples if one.valid} == {
        "gunicorn",
        "gunicorn (again)",
        "daphne-ipc",
    }


def test_variant_that_failed_to_start_twice_is_not_started_again(world: World) -> None:
    world.broken.add("daphne-redis")
    result = run(world, plan("quick", rounds=5, seed=3))
    assert {one.round for one in result.samples if one.failure} == {1, 2}
    assert result.watcher.skips == ["daphne-redis: it failed to start 2 times"] * 3
    assert result.rounds_done == 5


def test_variant_that_breaks_the_contract_is_never_measured(world: World) -> None:
    world.breaches["daphne-ipc"] = ["GET / answers 404", "/ws/echo/ closes"]
    result = run(world, plan("quick", seed=3))
    assert not any(entry.startswith("measure daphne-ipc") for entry in world.diary)
    failures = {one.failure for one in result.samples if one.arm == "daphne-ipc"}
    assert failures == {"it breaks the endpoint contract: GET / answers 404 (and 1 more)"}
    assert {one.log_tail for one in result.samples if one.failure} == {
        "GET / answers 404\n/ws/echo/ closes\nthe end of its log"
    }


def test_interrupted_campaign_stops_its_deployment_and_has_kept_what_it_measured(
    world: World,
) -> None:
    world.outcomes["daphne-redis", "relay"] = [GOOD, KeyboardInterrupt()]
    kept: list[Sample] = []
    with pytest.raises(KeyboardInterrupt):
        Run("name", plan("quick", seed=3), world, kept.append, Silent(), world.clock).go()
    assert world.running == 0
    assert kept
    assert all(one.valid for one in kept)


def test_quick_campaign_stays_within_its_budget_however_much_does_not_count(world: World) -> None:
    planned = plan("quick", seed=3)
    for arm, test in planned.cells():
        world.outcomes[arm.variant.name, test.test] = [BAD]
    result = run(world, planned)
    assert planned.budget_s
    assert world.now_s <= planned.budget_s
    assert max(one.attempt for one in result.samples) > 1
    assert result.rounds_done == 3  # no round is given up for reruns


def test_quick_campaign_on_a_slow_machine_does_fewer_rounds_and_says_so(world: World) -> None:
    world.slowness = 2.0
    result = run(world, plan("quick", seed=3))
    assert result.rounds_done < 3
    assert world.now_s <= 360
    left = 3 - result.rounds_done
    assert result.watcher.skips == [f"{left} of 3 rounds: time is up"]


def test_progress_grows_to_the_end_whatever_fails(world: World) -> None:
    world.broken.add("daphne-redis")
    world.outcomes["gunicorn", "latency"] = [BAD]
    shares = run(world, plan("quick", rounds=3, seed=3)).watcher.shares
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_one_slow_start_does_not_cost_the_reruns() -> None:
    now_s = iter((0, 12, 612))
    pace = Pace(total_s=240, clock=lambda: next(now_s))
    pace.did(4)
    assert pace.takes_s(100) == pytest.approx(100 * (12 + 60) / (4 + 60))
    pace.did(200)
    assert pace.takes_s(100) == pytest.approx(100 * (612 + 60) / (204 + 60))
