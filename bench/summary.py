"""What a campaign found: pure, from its samples to medians, ratios and what had to be left out.

Only valid samples enter a figure. What was discarded, what failed and what was never measured are
told apart, and none of them is ever a zero.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from bench.cells import Cell, Spread, cell_of, discarded, spread
from bench.figures import FIGURES, Figure, headline
from bench.intervals import Interval, ratio_interval
from bench.records import Campaign, Sample, missed
from bench.workloads import WORKLOADS

Reach = Mapping[tuple[str | None, str], float]  # of a test and a figure


@dataclass(frozen=True)
class Ratio:
    """A figure of ``arm`` to that of ``base``, paired by round.

    ``interval`` is None in a quick campaign and wherever too few rounds were valid in both.
    ``resolution`` is the factor up to which the A/A pair's interval for this figure reaches, in
    the same test or the one that stands for it.
    """

    arm: str
    base: str
    test: str
    figure: Figure
    spread: Spread
    interval: Interval | None
    resolution: float = 1.0

    @property
    def estimate(self) -> float:
        return self.interval.estimate if self.interval else self.spread.median

    @property
    def differs(self) -> bool | None:
        """Whether a difference can be told; None where there is no interval to tell it by.

        What one deployment may differ by from itself is not one.
        """
        return None if self.interval is None else self.interval.beyond(self.resolution)


@dataclass(frozen=True)
class Discard:
    """An attempt that a gate turned away; ``reasons`` by gate."""

    arm: str
    test: str
    round: int
    attempt: int
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Failure:
    """An attempt in which nothing could be measured."""

    arm: str
    test: str
    round: int
    attempt: int
    reason: str
    log_tail: str | None


@dataclass(frozen=True)
class Summary:
    """``cells`` and ``ratios`` hold only what was attempted.

    ``ratios`` are to the control; ``contrasts`` are between two other arms that differ in exactly
    one factor, such as the channel layer. ``reach`` is, by test and figure, the factor up to which
    the A/A pair's interval reaches.
    """

    campaign: Campaign
    cells: tuple[Cell, ...]
    ratios: tuple[Ratio, ...]
    contrasts: tuple[Ratio, ...]
    discards: tuple[Discard, ...]
    failures: tuple[Failure, ...]
    reach: Reach

    @property
    def quick(self) -> bool:
        return self.campaign.kind != "full"

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(self.campaign.arms)

    @property
    def discards_by_gate(self) -> dict[str, int]:
        return dict(Counter(gate for discard in self.discards for gate in discard.reasons))

    def cell(self, arm: str, test: str) -> Cell | None:
        return next((one for one in self.cells if (one.arm, one.test) == (arm, test)), None)

    def stand_in(self, test: str) -> Cell | None:
        """Return the control's cell that stands for ``test``, where it was not put to that test."""
        if test not in WORKLOADS or self.cell(self.campaign.control, test):
            return None
        return self.cell(self.campaign.control, WORKLOADS[test].control_test or test)

    def lines(self, test: str) -> list[Cell]:
        """Return the cells of ``test`` with a valid round, without the control's twin."""
        return [
            cell
            for cell in self.cells
            if cell.test == test and cell.valid and cell.arm != self.campaign.twin
        ]

    def lines_with_stand_in(self, test: str) -> list[Cell]:
        """Return ``lines``, after the control's stand-in where there is something to hold to it."""
        lines = self.lines(test)
        return [*filter(None, [self.stand_in(test)]), *lines] if lines else []

    def mode(self, test: str) -> str | None:
        return next((cell.mode for cell in self.cells if cell.test == test and cell.mode), None)

    def ratios_of(self, test: str, figure: Figure) -> list[Ratio]:
        return [one for one in self.ratios if one.test == test and one.figure == figure]

    def ratio(self, arm: str, test: str, figure: str) -> Ratio | None:
        for ratio in self.ratios:
            if (ratio.arm, ratio.test, ratio.figure.name) == (arm, test, figure):
                return ratio
        return None

    def between(self, above: Cell | None, below: Cell | None, figure: str) -> Ratio | None:
        """Return a figure of one cell to that of another; None where no round has both."""
        if above is None or below is None:
            return None
        found = _ratio(above, below, FIGURES[figure], self.campaign.kind)
        return found and _resolved(found, self.reach)

    def resolution(self, test: str, figure: str) -> float:
        """Return the factor up to which a ratio of ``figure`` tells nothing in ``test``."""
        return _resolution(self.reach, test, figure)

    def verdicts(self, test: str) -> tuple[Figure, ...]:
        """Return the figures that stand in the verdict of ``test``."""
        modes = {cell.mode for cell in self.cells if cell.test == test and cell.mode}
        return tuple(figure for mode in sorted(modes) for figure in headline(mode, test))

    @property
    def alarms(self) -> tuple[Ratio, ...]:
        """The A/A ratios among the headline figures whose interval excludes 1."""
        return tuple(ratio for ratio in self.twin_ratios if ratio.differs)

    @property
    def twin_ratios(self) -> tuple[Ratio, ...]:
        """The headline ratios of the control to itself."""
        return tuple(
            ratio
            for ratio in self.ratios
            if ratio.arm == self.campaign.twin and ratio.figure in self.verdicts(ratio.test)
        )


def summarize(campaign: Campaign, samples: Sequence[Sample]) -> Summary:
    """Return what ``samples`` say about the arms of ``campaign``."""
    by_cell: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in sorted(samples, key=lambda one: (one.round, one.attempt)):
        by_cell[sample.arm, sample.test].append(sample)
    cells = {
        (arm, test): cell_of(by_cell[arm, test])
        for test in campaign.tests
        for arm in campaign.arms
        if (arm, test) in by_cell
    }
    ratios = tuple(_ratios(_to_control(campaign, cells), campaign.kind))
    contrasts = tuple(_ratios(_to_sibling(campaign, cells), campaign.kind))
    reach = _reach([ratio for ratio in ratios if ratio.arm == campaign.twin])
    return Summary(
        campaign,
        cells=tuple(cells.values()),
        ratios=tuple(
            ratio if ratio.arm == campaign.twin else _resolved(ratio, reach) for ratio in ratios
        ),
        contrasts=tuple(_resolved(ratio, reach) for ratio in contrasts),
        discards=tuple(_discards(samples)),
        failures=tuple(_failures(samples)),
        reach=reach,
    )


Cells = Mapping[tuple[str, str], Cell]
Pairs = Iterator[tuple[Cell, Cell]]


def _to_control(campaign: Campaign, cells: Cells) -> Pairs:
    """Pair each cell with the control's: of the same test, or of the one that stands for it."""
    for (arm, test), cell in cells.items():
        base = cells.get((campaign.control, test))
        if base is None and test in WORKLOADS:
            base = cells.get((campaign.control, WORKLOADS[test].control_test or test))
        if base is not None and arm != campaign.control:
            yield cell, base


def _to_sibling(campaign: Campaign, cells: Cells) -> Pairs:
    """Pair cells of arms that differ in exactly one factor, the control's pair left out."""
    arms = [arm for arm in campaign.arms if arm not in (campaign.control, campaign.twin)]
    for base, arm in combinations(arms, 2):
        left, right = campaign.arms[base], campaign.arms[arm]
        if sum(left[factor] != right[factor] for factor in left) == 1:
            for test in campaign.tests:
                if (arm, test) in cells and (base, test) in cells:
                    yield cells[arm, test], cells[base, test]


def _ratios(pairs: Pairs, kind: str) -> Iterator[Ratio]:
    """Yield every figure of each pair that at least one round measured on both sides."""
    for cell, base in pairs:
        for figure in FIGURES.values():
            if figure.has_ratio and (ratio := _ratio(cell, base, figure, kind)):
                yield ratio


def _ratio(cell: Cell, base: Cell, figure: Figure, kind: str) -> Ratio | None:
    ratios = paired_ratios(cell.spreads.get(figure.name), base.spreads.get(figure.name))
    if not ratios:
        return None
    found = ratio_interval(list(ratios.values())) if kind == "full" else None
    return Ratio(cell.arm, base.arm, cell.test, figure, spread(ratios), found)


def _reach(of_the_twin: Sequence[Ratio]) -> Reach:
    """Return how far from 1 the A/A pair's interval reaches, by test and figure."""
    return {
        (ratio.test, ratio.figure.name): ratio.interval.reach
        for ratio in of_the_twin
        if ratio.interval is not None
    }


def _resolution(reach: Reach, test: str, figure: str) -> float:
    """Return the reach in ``test``; of one that the pair was not put to, that of its stand-in.

    Where neither is known, the coarsest of that figure in any test counts.
    """
    stand_in = WORKLOADS[test].control_test if test in WORKLOADS else None
    for name in (test, stand_in):
        if (name, figure) in reach:
            return reach[name, figure]
    return max((far for (_, name), far in reach.items() if name == figure), default=1.0)


def _resolved(ratio: Ratio, reach: Reach) -> Ratio:
    return replace(ratio, resolution=_resolution(reach, ratio.test, ratio.figure.name))


def paired_ratios(above: Spread | None, below: Spread | None) -> dict[int, float]:
    """Return the ratio of every round in which both sides are positive, by round."""
    if above is None or below is None:
        return {}
    return {
        number: value / below.rounds[number]
        for number, value in above.rounds.items()
        if value > 0 and below.rounds.get(number, 0) > 0
    }


def _discards(samples: Sequence[Sample]) -> list[Discard]:
    return [
        Discard(
            sample.arm,
            sample.test,
            sample.round,
            sample.attempt,
            {gate.name: gate.reason for gate in missed(sample.gates)},
        )
        for sample in samples
        if discarded(sample)
    ]


def _failures(samples: Sequence[Sample]) -> list[Failure]:
    return [
        Failure(
            sample.arm,
            sample.test,
            sample.round,
            sample.attempt,
            sample.failure,
            sample.log_tail,
        )
        for sample in samples
        if sample.failure is not None
    ]
