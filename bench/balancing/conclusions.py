"""What follows from a study: each front held to the first column, by intervals only. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from bench.balancing.cells import Column
from bench.balancing.figures import Readings
from bench.balancing.reading import Study
from bench.findings import MISSING, times
from bench.intervals import Interval

FIGURES = {"per_cpu_s": "per server-CPU-second", "rps": "per second"}

# By cell and tool.
Intervals = dict[tuple[str, str], Interval]


@dataclass(frozen=True)
class Held:
    """In how many pairs of a cell and a tool a column does more or less than the first.

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
    itself = {figure: intervals(study, readings, twin, figure) for figure in FIGURES}
    found = {
        (column, figure): held(
            intervals(study, readings, column, figure), {} if column == twin else itself[figure]
        )
        for column in others
        for figure in FIGURES
    }
    if not any(found.values()):
        return
    yield (
        f"Each column against {first.name}: in how many pairs of a cell and a tool it does more, "
        "less, or cannot be told apart, and from where to where the ratios go."
        f"{_rule(first, itself) if twin else ''}\n"
    )
    yield f"| | {' | '.join(FIGURES.values())} | requests or messages failed |"
    yield f"|---|{'---|' * len(FIGURES)}--:|"
    for column in study.columns:
        texts = [_text(found.get((column, figure))) for figure in FIGURES]
        yield f"| {column.name} | {' | '.join(texts)} | {_failed(study, readings, column)} |"


def held(found: Intervals, itself: Intervals) -> Held | None:
    """Return how a column compares with the first one, and that with ``itself``.

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


def intervals(study: Study, readings: Readings, column: Column | None, figure: str) -> Intervals:
    """Return the intervals of the ratios of ``column`` to the first one, where there are some."""
    if column is None:
        return {}
    names = column.name, study.columns[0].name
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
