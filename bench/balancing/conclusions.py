"""What follows from a study: each front held to the first column, by intervals only. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from bench.balancing.cells import Column
from bench.balancing.figures import Ratio, Readings
from bench.balancing.reading import Study
from bench.findings import times

FIGURES = {"per_cpu_s": "per server-CPU-second", "rps": "per second"}


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
    first, others = study.columns[0], study.columns[1:]
    found = {
        (column.name, figure): held(study, readings, column, figure)
        for column in others
        for figure in FIGURES
    }
    if not any(found.values()):
        return
    yield "## What to conclude\n"
    yield (
        f"Each column against {first.name}: in how many pairs of a cell and a tool it does more, "
        "less, or cannot be told apart, and from where to where the ratios go."
        f"{_rule(study, readings)}\n"
    )
    yield f"| | {' | '.join(FIGURES.values())} | requests or messages failed |"
    yield f"|---|{'---|' * len(FIGURES)}--:|"
    for column in study.columns:
        texts = [_text(found.get((column.name, figure))) for figure in FIGURES]
        yield f"| {column.name} | {' | '.join(texts)} | {_failed(study, readings, column)} |"
    yield ""


def held(study: Study, readings: Readings, column: Column, figure: str) -> Held | None:
    """Return how ``column`` compares with the first one; None where no interval tells."""
    found = dict(_ratios(study, readings, column, figure))
    if not found:
        return None
    twin = twin_of(study)
    itself = dict(_ratios(study, readings, twin, figure)) if twin and twin != column else {}
    more = less = 0
    for pair, ratio in found.items():
        assert ratio.interval is not None
        if ratio.interval.beyond(_reach(itself.get(pair))):
            more += ratio.interval.low > 1
            less += ratio.interval.high < 1
    estimates = [one.interval.estimate for one in found.values() if one.interval]
    return Held(more, less, len(found) - more - less, min(estimates), max(estimates))


def twin_of(study: Study) -> Column | None:
    """Return the column that is the first one once more."""
    first, *others = study.columns
    return next((one for one in others if one.variant and one.variant == first.variant), None)


def _ratios(
    study: Study, readings: Readings, column: Column, figure: str
) -> Iterator[tuple[tuple[str, str], Ratio]]:
    """Yield (cell, tool) and the ratio to the first column, where it has an interval."""
    for cell in study.cells:
        for tool in study.tools:
            names = column.name, study.columns[0].name
            ratio = readings.ratio(cell.name, tool, names, figure)
            if ratio is not None and ratio.interval is not None:
                yield (cell.name, tool), ratio


def _reach(itself: Ratio | None) -> float:
    """Return by what factor the first column may differ from itself."""
    if itself is None or itself.interval is None:
        return 1.0
    return max(itself.interval.high, 1 / itself.interval.low)


def _rule(study: Study, readings: Readings) -> str:
    twin = twin_of(study)
    if twin is None:
        return ""
    reaches = {
        label: [_reach(one) for _, one in _ratios(study, readings, twin, figure)]
        for figure, label in FIGURES.items()
    }
    typical = " and ".join(
        f"{times(median(found))} {label}" for label, found in reaches.items() if found
    )
    return (
        f" {study.columns[0].name} was measured twice in every round, as if it were two: a ratio "
        "counts only where all of its interval is further from 1 than that of these two in the "
        f"same cell, which at the median of the cells reaches to a factor of {typical}."
    )


def _text(found: Held | None) -> str:
    if found is None:
        return "–"
    return (
        f"{found.more} more, {found.less} less, {found.undecided} not told apart: "
        f"{times(found.low)} to {times(found.high)}"
    )


def _failed(study: Study, readings: Readings, column: Column) -> str:
    pairs = [(cell.name, tool) for cell in study.cells for tool in study.tools]
    errors = [readings.errors(*pair, column.name) for pair in pairs]
    failed = sum(sum(one.values()) for one in errors if one)
    return f"{failed:,} of {sum(readings.asked(*pair, column.name) for pair in pairs):,}"
