"""What a campaign is going to do, in which order, and about how long that takes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random

from bench.errors import BadInput
from bench.gates import SUCCESSES_FOR_P99
from bench.variants import CONTROL, HEADLINE, Variant
from bench.workloads import FULL, QUICK, Workload, resolve

QUICK_BUDGET_S = 360.0
# Many short rounds rather than few long ones: a machine with neighbours changes its speed by the
# minute, and the arms of a round are compared with each other.
FULL_ROUNDS = 16
# For the estimate only; a running campaign corrects it by what it sees.
START_AND_STOP_S = 4.0
_GENERATOR_S = 1.0


@dataclass(frozen=True)
class Arm:
    """One thing compared. The two arms of an A/A pair are the same variant under two names."""

    name: str
    variant: Variant


@dataclass(frozen=True)
class Plan:
    """A campaign to be run. ``budget_s`` bounds reruns and rounds; None: take what it takes."""

    kind: str  # quick, full
    arms: tuple[Arm, ...]
    tests: tuple[Workload, ...]
    rounds: int
    seed: int
    seconds: Mapping[str, float]  # test -> how long it is measured
    fewer_rounds: Mapping[str, int]  # test -> in how many of the rounds, where not in all
    warmup_s: float
    budget_s: float | None

    @property
    def control(self) -> Arm:
        return self.arms[0]

    @property
    def twin(self) -> Arm:
        return next(arm for arm in self.arms[1:] if arm.variant == self.control.variant)

    def order(self, round_: int) -> list[Arm]:
        """Return every arm once, in the order of ``round_``: shuffled, the same for one seed.

        A machine that gets slower by the minute is then slower for every arm alike.
        """
        return Random(f"{self.seed}/{round_}").sample(self.arms, len(self.arms))  # noqa: S311

    def rounds_of(self, test: Workload) -> int:
        """Return in how many rounds, from the first on, ``test`` is measured."""
        return min(self.rounds, self.fewer_rounds.get(test.test, self.rounds))

    def tests_of(self, arm: Arm, round_: int) -> list[Workload]:
        """Return what ``arm`` is put to in ``round_``.

        The A/A pair is for the tests of all rounds: in a few it would hardly tell anything.
        """
        return [
            test
            for test in self.tests
            if test.runs_on(arm.variant)
            and round_ <= self.rounds_of(test)
            and not (arm == self.twin and test.test in self.fewer_rounds)
        ]

    def cells(self, round_: int = 1) -> Iterator[tuple[Arm, Workload]]:
        """Yield what is measured in ``round_``; the first has everything."""
        for arm in self.arms:
            for test in self.tests_of(arm, round_):
                yield arm, test

    def cell_s(self, test: Workload) -> float:
        """Estimate how long one measurement of ``test`` takes, start of the generator included."""
        return _GENERATOR_S + self.warmup_s + self.seconds[test.test]

    def round_s(self, round_: int) -> float:
        cells = list(self.cells(round_))
        starts_s = START_AND_STOP_S * len({arm.name for arm, _ in cells})
        return starts_s + sum(self.cell_s(test) for _, test in cells)

    def total_s(self, first: int = 1) -> float:
        """Estimate how long the rounds take, from ``first`` on."""
        return sum(map(self.round_s, range(first, self.rounds + 1)))


def plan(
    kind: str,
    *,
    variants: Sequence[Variant] = HEADLINE,
    tests: Sequence[str] = (),
    rounds: int | None = None,
    seconds: float | None = None,
    seed: int,
) -> Plan:
    """Return the ``quick`` or ``full`` campaign, with whatever was asked for in its place.

    The control is gunicorn where it takes part, else the first variant; it runs twice in every
    round, so that a reader sees by how much two deployments differ that are the same.
    """
    _refuse_nothing("--rounds", rounds)
    _refuse_nothing("--seconds", seconds)
    chosen = dict.fromkeys(tests or (FULL if kind == "full" else QUICK))
    workloads = tuple(resolve(name) for name in chosen)
    fewer = {test.test: test.fewer_rounds for test in workloads if test.fewer_rounds}
    asked_for = bool(tests or rounds or seconds) or tuple(variants) != HEADLINE
    planned = Plan(
        kind=kind,
        arms=_arms(tuple(dict.fromkeys(variants))),
        tests=workloads,
        rounds=rounds or (FULL_ROUNDS if kind == "full" else 3),
        seed=seed,
        seconds={test.test: seconds or test.seconds(kind) for test in workloads},
        # On its own such a test has every round.
        fewer_rounds=fewer if kind == "full" and len(fewer) < len(workloads) else {},
        warmup_s=2.0 if kind == "full" else 1.0,
        budget_s=None if kind == "full" or asked_for else QUICK_BUDGET_S,
    )
    _refuse_idle_tests(planned)
    _refuse_too_short(planned)
    return planned


def _arms(variants: tuple[Variant, ...]) -> tuple[Arm, ...]:
    control = CONTROL if CONTROL in variants else variants[0]
    others = (variant for variant in variants if variant != control)
    return (
        Arm(control.name, control),
        Arm(f"{control.name} (again)", control),
        *(Arm(variant.name, variant) for variant in others),
    )


def _refuse_nothing(option: str, value: float | None) -> None:
    if value is not None and value <= 0:
        raise BadInput(f"{option} {value:g} measures nothing: give a positive number")


def _refuse_idle_tests(planned: Plan) -> None:
    measured = {test.test for _, test in planned.cells()}
    for test in planned.tests:
        if test.test not in measured:
            names = ", ".join(arm.name for arm in planned.arms)
            missing = "a worker" if test.needs_worker else "an ASGI server"
            raise BadInput(f"{test.test} runs on none of {names}: add a variant with {missing}")


def _refuse_too_short(planned: Plan) -> None:
    """Raise ``BadInput`` where a test is so short that a gate would discard every attempt."""
    for test in planned.tests:
        if test.rate_rps and test.rate_rps * planned.seconds[test.test] < SUCCESSES_FOR_P99:
            least_s = ceil(SUCCESSES_FOR_P99 / test.rate_rps)
            raise BadInput(
                f"--seconds {planned.seconds[test.test]:g} is too short for a 99th percentile of "
                f"{test.test}: give {least_s} or more"
            )
