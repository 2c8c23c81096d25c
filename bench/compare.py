"""Two campaigns beside each other, for somebody who has upgraded one package.

Their rounds have nothing to do with each other, so a ratio has the two-sample interval. Where the
machine has changed too, the ratio of the ratios to the control is the safer figure: what slows
everything down cancels in it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from bench.cells import Cell, Spread
from bench.figures import Figure, number
from bench.findings import MISSING, times, title, tone
from bench.intervals import Interval, ratio_shift
from bench.summary import Summary
from bench.tables import STYLES


@dataclass(frozen=True)
class Change:
    """One figure of one arm, before and after; a side that was not measured is None.

    ``relative`` is the change of its ratio to the control, None for the control itself.
    ``resolution`` is the factor below which either campaign's A/A pair tells nothing.
    """

    arm: str
    test: str
    figure: Figure
    before: Spread | None
    after: Spread | None
    interval: Interval | None
    relative: Interval | None
    resolution: float

    @property
    def estimate(self) -> float | None:
        """By what factor the figure changed; None where one side is missing or zero."""
        if self.interval:
            return self.interval.estimate
        if not self.before or not self.after or not self.before.median:
            return None
        return self.after.median / self.before.median


@dataclass(frozen=True)
class Difference:
    """Something other than a figure that the two campaigns do not share."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Comparison:
    before: str
    after: str
    changes: tuple[Change, ...]
    versions: tuple[Difference, ...]
    machine: tuple[Difference, ...]
    warnings: tuple[str, ...]


def compare(before: Summary, after: Summary) -> Comparison:
    """Return how every headline figure of every arm changed between two campaigns."""
    then, now = before.campaign, after.campaign
    machine = tuple(_differences(then.provenance, now.provenance, "machine"))
    return Comparison(
        before=then.name,
        after=now.name,
        changes=tuple(_changes(before, after)),
        versions=tuple(_differences(then.provenance, now.provenance, "versions")),
        machine=machine,
        warnings=tuple(_warnings(before, after, machine)),
    )


def _changes(before: Summary, after: Summary) -> Iterator[Change]:
    for test in dict.fromkeys((*before.campaign.tests, *after.campaign.tests)):
        figures = before.verdicts(test) or after.verdicts(test)
        for arm in dict.fromkeys((*before.arms, *after.arms)):
            cells = before.cell(arm, test), after.cell(arm, test)
            if any(cells) and arm not in (before.campaign.twin, after.campaign.twin):
                for figure in figures:
                    yield _change(before, after, arm, test, figure)


def _change(before: Summary, after: Summary, arm: str, test: str, figure: Figure) -> Change:
    sides = [_spread(summary.cell(arm, test), figure) for summary in (before, after)]
    ratios = [summary.ratio(arm, test, figure.name) for summary in (before, after)]
    return Change(
        arm=arm,
        test=test,
        figure=figure,
        before=sides[0],
        after=sides[1],
        interval=_shift(sides[0], sides[1]),
        relative=_shift(*(ratio.spread if ratio else None for ratio in ratios)),
        resolution=max(one.resolution(test, figure.name) for one in (before, after)),
    )


def _spread(cell: Cell | None, figure: Figure) -> Spread | None:
    return cell.spreads.get(figure.name) if cell else None


def _shift(before: Spread | None, after: Spread | None) -> Interval | None:
    if before is None or after is None:
        return None
    return ratio_shift(_positive(before), _positive(after))


def _positive(side: Spread) -> list[float]:
    return [value for value in side.rounds.values() if value > 0]


def _differences(
    before: Mapping[str, Any], after: Mapping[str, Any], part: str
) -> Iterator[Difference]:
    then, now = before.get(part) or {}, after.get(part) or {}
    for name in dict.fromkeys((*then, *now)):
        if then.get(name) != now.get(name):
            yield Difference(name, _text(then.get(name)), _text(now.get(name)))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _warnings(before: Summary, after: Summary, machine: tuple[Difference, ...]) -> Iterator[str]:
    if machine:
        names = ", ".join(difference.name for difference in machine)
        yield f"the machines differ ({names}): look at the change relative to the control"
    if before.campaign.control != after.campaign.control:
        yield "the controls differ: the change relative to the control means nothing"
    if before.campaign.kind != after.campaign.kind:
        yield "one campaign is quick and the other is full: they ran for different times"
    for summary in (before, after):
        if summary.alarms:
            yield f"in {summary.campaign.name} the control differs from itself"


def comparison_table(comparison: Comparison) -> Table:
    """Return the changes for a terminal of 100 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading, right in (
        ("deployment", False),
        ("figure", False),
        ("before", True),
        ("after", True),
        ("after / before", False),
        ("relative to the control", False),
    ):
        table.add_column(heading, justify="right" if right else "left", no_wrap=right)
    test = ""
    for change in comparison.changes:
        if change.test != test:
            test = change.test
            table.add_row()
            table.add_row(Text(title(test), style="bold"))
        table.add_row(*_cells(change))
    return table


def _cells(change: Change) -> tuple[Text, ...]:
    figure = change.figure
    return (
        Text(change.arm),
        Text(figure.heading),
        Text(number(change.before.median if change.before else None)),
        Text(number(change.after.median if change.after else None)),
        _factor(change.interval, change.estimate, change),
        _factor(change.relative, None, change),
    )


def _factor(found: Interval | None, estimate: float | None, change: Change) -> Text:
    if found is None:
        return Text(MISSING if estimate is None else f"{times(estimate)} (no interval)")
    means = tone(found, change.figure, change.resolution)
    mark = "≈ " if means == "same" else ""
    span = f"({times(found.low)}–{times(found.high)})"
    return Text(f"{mark}{times(found.estimate)} {span}", style=STYLES[means])
