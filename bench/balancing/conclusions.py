"""What follows from a study, by intervals: columns against the first, and each other. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from statistics import median, mode

from bench.balancing.cells import Column
from bench.balancing.figures import Readings
from bench.balancing.reading import Study
from bench.findings import MISSING, times
from bench.intervals import Interval
from bench.variants import SWARM_VARIANTS, VARIANTS

FIGURES = {"per_cpu_s": "per server-CPU-second", "rps": "per second"}

# By cell and tool.
Intervals = dict[tuple[str, str], Interval]
Pair = tuple[Column, Column]


@dataclass(frozen=True)
class Held:
    """In how many pairs of a cell and a tool a column does more or less than another.

    ``low`` and ``high`` are the least and the greatest of the estimated ratios.
    """

    more: int
    less: int
    undecided: int
    low: float
    high: float


def conclusions(study: Study, readings: Readings) -> Iterator[str]:
    """Yield the section of the page; nothing where there are too few rounds for intervals."""
    if said := list(compared(study, readings)):
        yield "## What to conclude\n"
        yield from said
        yield ""


def compared(study: Study, readings: Readings) -> Iterator[str]:
    """Yield the table and how to read it; nothing where there are too few rounds."""
    first, *others = study.columns
    twin = twin_of(study)
    itself = {
        figure: intervals(study, readings, (twin, first), figure) if twin else {}
        for figure in FIGURES
    }

    def against(pair: Pair) -> list[Held | None]:
        return [
            held(intervals(study, readings, pair, figure), {} if twin in pair else itself[figure])
            for figure in FIGURES
        ]

    found = {column: against((column, first)) for column in others}
    if not any(one for row in found.values() for one in row):
        return
    yield (
        f"Each column against {first.name}: in how many pairs of a cell and a tool it does more, "
        "less, or cannot be told apart, and from where to where the ratios go."
        f"{_rule(first, itself) if twin else ''}\n"
    )
    yield f"| | {' | '.join(FIGURES.values())} | requests or messages failed |"
    yield f"|---|{'---|' * len(FIGURES)}--:|"
    for column in study.columns:
        texts = map(_text, found.get(column, [None] * len(FIGURES)))
        yield f"| {column.name} | {' | '.join(texts)} | {_failed(study, readings, column)} |"
    if pairs := list(combinations(alike(study), 2)):
        yield "\nThe fronts of as many processes against each other, by the same rule:\n"
        yield f"| | {' | '.join(FIGURES.values())} |"
        yield f"|---|{'---|' * len(FIGURES)}"
        for one, other in pairs:
            texts = map(_text, against((one, other)))
            yield f"| {one.name} against {other.name} | {' | '.join(texts)} |"


def alike(study: Study) -> list[Column]:
    """Return the columns with something in front of as many processes as most such columns have."""
    known = VARIANTS | SWARM_VARIANTS
    fronted = {
        column: known[column.variant].processes
        for column in study.columns
        if column.variant in known and known[column.variant].proxy != "direct"
    }
    return [column for column in fronted if fronted[column] == mode(fronted.values())]


def held(found: Intervals, itself: Intervals) -> Held | None:
    """Return how a column compares with another, by how far the first differs from ``itself``.

    None where no interval tells.
    """
    if not found:
        return None
    told = [
        one
        for pair, one in found.items()
        if one.beyond(itself[pair].reach if pair in itself else 1.0)
    ]
    more, less = sum(one.low > 1 for one in told), sum(one.high < 1 for one in told)
    estimates = [one.estimate for one in found.values()]
    return Held(more, less, len(found) - more - less, min(estimates), max(estimates))


def twin_of(study: Study) -> Column | None:
    """Return the column that is the first one once more."""
    first, *others = study.columns
    return next((one for one in others if one.variant and one.variant == first.variant), None)


def intervals(study: Study, readings: Readings, columns: Pair, figure: str) -> Intervals:
    """Return the intervals of the ratios of one column to the other, where there are some."""
    names = columns[0].name, columns[1].name
    pairs = [(cell.name, tool) for cell in study.cells for tool in study.tools]
    ratios = {pair: readings.ratio(*pair, names, figure) for pair in pairs}
    return {pair: one.interval for pair, one in ratios.items() if one and one.interval}


def _rule(first: Column, itself: dict[str, Intervals]) -> str:
    typical = " and ".join(
        f"{times(median(one.reach for one in itself[figure].values()))} {label}"
        for figure, label in FIGURES.items()
        if itself[figure]
    )
    return (
        f" {first.name} was measured twice in every round, as if it were two: a ratio "
        "counts only where all of its interval is further from 1 than that of these two in the "
        f"same cell, which at the median of the cells reaches to a factor of {typical}."
    )


def _text(found: Held | None) -> str:
    if found is None:
        return MISSING
    return (
        f"{found.more} more, {found.less} less, {found.undecided} not told apart: "
        f"{times(found.low)} to {times(found.high)}"
    )


def _failed(study: Study, readings: Readings, column: Column) -> str:
    pairs = [(cell.name, tool) for cell in study.cells for tool in study.tools]
    failed = sum(readings.failed(*pair, column.name) for pair in pairs)
    return f"{failed:,} of {sum(readings.asked(*pair, column.name) for pair in pairs):,}"
