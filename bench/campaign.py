"""Runs a campaign: every arm once a round, every test on it, and again what did not count.

What touches processes is behind ``Apparatus``; here is only the order of things, and what becomes
of failures. Every attempt is handed to ``keep`` as soon as it has been made, so that whatever ends
a campaign early, what was measured is there.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from bench.plan import START_AND_STOP_S, Arm, Plan
from bench.records import Gate, Load, Machine, Sample, Usage
from bench.variants import Variant
from bench.workloads import Workload

# Seconds before each attempt at a cell: the first, and up to 3 reruns. What was in the way (mostly
# another guest of the hypervisor) is often gone half a minute later, and seldom at once.
RESTS_S = (0.0, 2.0, 10.0, 30.0)
ATTEMPTS = len(RESTS_S)
_ASSUMED_S = 60.0  # of the plan count as done at its own pace: one slow start foretells nothing
_STARTS = 2  # a variant that failed to start in so many rounds is not started again


class Failed(Exception):  # noqa: N818 - it is what happened to a deployment, not to this program
    """A variant did not start, or a load could not be put on it."""

    def __init__(self, reason: str, log_tail: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.log_tail = log_tail


@dataclass(frozen=True)
class Measurement:
    """What one load on one deployment came to, judged."""

    load: Load
    server: Usage
    generator: Usage
    machine: Machine
    gates: tuple[Gate, ...]
    command: tuple[str, ...]

    def on(self, blank: Sample, identity: dict[str, Any]) -> Sample:
        """Return ``blank``, which has the names, as the sample of the deployment ``identity``."""
        return replace(
            blank,
            load=self.load,
            server=self.server,
            generator=self.generator,
            machine=self.machine,
            identity=identity,
            gates=self.gates,
            command=self.command,
        )


class Deployed(Protocol):
    """A variant that runs and is ready."""

    @property
    def identity(self) -> dict[str, Any]: ...
    def violations(self) -> list[str]:
        """Return each breach of the endpoint contract as a sentence."""

    def measure(self, test: Workload, *, duration_s: float, warmup_s: float) -> Measurement:
        """Put the load of ``test`` on it; raise ``Failed`` if there is nothing to show for it."""

    def log_tail(self) -> str: ...


class Apparatus(Protocol):
    """What starts variants; raises ``Failed`` for one that does not start."""

    def deployed(self, variant: Variant) -> AbstractContextManager[Deployed]: ...


class Watcher(Protocol):
    """Is told how a campaign goes. ``left_s`` is the estimate of what it still takes."""

    def starting(self, round_: int, arm: Arm) -> None: ...
    def measuring(self, round_: int, arm: Arm, test: Workload, attempt: int) -> None: ...
    def kept(self, sample: Sample) -> None: ...
    def progressed(self, share: float, left_s: float) -> None: ...
    def skipped(self, what: str, why: str) -> None: ...


class Pace:
    """How far a campaign is and what it still takes: the plan, corrected by how it has gone.

    Reruns are left out of the correction: that some were needed so far makes no later round longer.
    """

    def __init__(self, total_s: float, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun_s = clock()
        self._total_s = total_s
        self._done_s = 0.0
        self._reruns_s = 0.0

    def did(self, planned_s: float) -> None:
        self._done_s += planned_s

    def reran(self, since_s: float) -> None:
        """Take note of a rerun that began at ``since_s`` and has just ended."""
        self._reruns_s += self._clock() - since_s

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._begun_s

    @property
    def share(self) -> float:
        return min(1.0, self._done_s / self._total_s)

    def takes_s(self, planned_s: float) -> float:
        """Return how long something planned to take ``planned_s`` takes at the pace so far."""
        taken_s = self.elapsed_s - self._reruns_s
        return planned_s * (taken_s + _ASSUMED_S) / (self._done_s + _ASSUMED_S)

    @property
    def left_s(self) -> float:
        return self.takes_s(max(0.0, self._total_s - self._done_s))


@dataclass
class Run:
    """One campaign under way, from round ``first`` on. ``name`` goes into each sample."""

    name: str
    plan: Plan
    apparatus: Apparatus
    keep: Callable[[Sample], None]
    watcher: Watcher
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    first: int = 1
    rounds_done: int = 0
    _refused: dict[Variant, str] = field(default_factory=dict)  # why it is not started again
    _failed_starts: dict[Variant, int] = field(default_factory=dict)
    _checked: set[Variant] = field(default_factory=set)

    def go(self) -> None:
        """Run every round, as many of them as the budget has room for."""
        self.pace = Pace(self.plan.total_s(self.first), self.clock)
        self.rounds_done = self.first - 1
        for round_ in range(self.first, self.plan.rounds + 1):
            if round_ > self.first and not self._affords(self.plan.round_s(round_)):
                left = self.plan.rounds - self.rounds_done
                self.watcher.skipped(f"{left} of {self.plan.rounds} rounds", "time is up")
                return
            for arm in self.plan.order(round_):
                self._run_arm(round_, arm)
            self.rounds_done = round_

    def _affords(self, planned_s: float) -> bool:
        budget_s = self.plan.budget_s
        return budget_s is None or self.pace.elapsed_s + self.pace.takes_s(planned_s) <= budget_s

    def _affords_rerun(self, test: Workload) -> bool:
        """Whether there is time for one more attempt without giving up a round for it."""
        budget_s = self.plan.budget_s
        needed_s = self.pace.left_s + self.pace.takes_s(self.plan.cell_s(test))
        return budget_s is None or self.pace.elapsed_s + needed_s <= budget_s

    def _run_arm(self, round_: int, arm: Arm) -> None:
        tests = self.plan.tests_of(arm, round_)
        if not tests:
            return
        self.watcher.starting(round_, arm)
        if arm.variant in self._refused:
            self.watcher.skipped(arm.name, self._refused[arm.variant])
            self._tell(sum(self.plan.cell_s(test) for test in tests))
        else:
            self._try_arm(round_, arm, tests)
        self._tell(START_AND_STOP_S)

    def _try_arm(self, round_: int, arm: Arm, tests: Sequence[Workload]) -> None:
        try:
            with self.apparatus.deployed(arm.variant) as deployed:
                self._check_contract(arm.variant, deployed)
                for test in tests:
                    self._run_cell(round_, arm, test, deployed)
        except Failed as failure:
            self._fail_arm(round_, arm, tests, failure)

    def _check_contract(self, variant: Variant, deployed: Deployed) -> None:
        """Raise ``Failed`` for a variant that does not serve what all serve. Asked once."""
        if variant in self._checked:
            return
        self._checked.add(variant)
        if violations := deployed.violations():
            self._refused[variant] = "it breaks the endpoint contract"
            more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
            raise Failed(
                f"it breaks the endpoint contract: {violations[0]}{more}",
                "\n".join([*violations, deployed.log_tail()]),
            )

    def _fail_arm(self, round_: int, arm: Arm, tests: Sequence[Workload], failure: Failed) -> None:
        """Keep a failure for every test of an arm that could not be started, and go on."""
        failed = self._failed_starts[arm.variant] = self._failed_starts.get(arm.variant, 0) + 1
        if failed >= _STARTS:
            self._refused.setdefault(arm.variant, f"it failed to start {failed} times")
        for test in tests:
            self._keep(self._failure(round_, arm, test, 1, failure))
            self._tell(self.plan.cell_s(test))

    def _run_cell(self, round_: int, arm: Arm, test: Workload, deployed: Deployed) -> None:
        """Measure until an attempt counts, at most ``ATTEMPTS`` times."""
        for attempt in range(1, ATTEMPTS + 1):
            self.watcher.measuring(round_, arm, test, attempt)
            begun_s = self.clock()
            if self.plan.kind == "full":
                self.sleep(RESTS_S[attempt - 1])
            sample = self._attempt(round_, arm, test, attempt, deployed)
            self._keep(sample)
            if attempt > 1:
                self.pace.reran(begun_s)
            # What hung is still in there: only a fresh deployment can be asked again.
            if sample.valid or test.hangs or not self._affords_rerun(test):
                break
        self._tell(self.plan.cell_s(test))

    def _attempt(
        self, round_: int, arm: Arm, test: Workload, attempt: int, deployed: Deployed
    ) -> Sample:
        blank = self._blank(round_, arm, test, attempt)
        try:
            measured = deployed.measure(
                test, duration_s=self.plan.seconds[test.test], warmup_s=self.plan.warmup_s
            )
        except Failed as failure:
            return self._failure(round_, arm, test, attempt, failure)
        return measured.on(blank, deployed.identity)

    def _failure(
        self, round_: int, arm: Arm, test: Workload, attempt: int, failure: Failed
    ) -> Sample:
        blank = self._blank(round_, arm, test, attempt)
        return replace(blank, failure=failure.reason, log_tail=failure.log_tail)

    def _blank(self, round_: int, arm: Arm, test: Workload, attempt: int) -> Sample:
        return Sample(
            campaign=self.name,
            arm=arm.name,
            variant=arm.variant.name,
            test=test.test,
            round=round_,
            attempt=attempt,
            started=_now(),
            load=None,
            server=None,
            generator=None,
            machine=None,
        )

    def _keep(self, sample: Sample) -> None:
        self.keep(sample)
        self.watcher.kept(sample)

    def _tell(self, planned_s: float) -> None:
        self.pace.did(planned_s)
        self.watcher.progressed(self.pace.share, self.pace.left_s)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
