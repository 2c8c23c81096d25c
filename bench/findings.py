"""The verdict table as data, which the terminal, the README and the page print their own way."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bench.cells import Cell
from bench.figures import Figure, number
from bench.gates import FAILURES, SATURATION
from bench.intervals import Interval
from bench.summary import Ratio, Summary
from bench.workloads import WORKLOADS

Tone = Literal["better", "worse", "same", "unknown"]
MISSING = "–"
INTERVAL = "95 % interval"
ALIKE = (
    "≈ marks a ratio that tells no difference: its interval contains 1, or ends no further from 1 "
    "than the control's ratio to itself."
)
# What it means to have missed an advisory gate.
_ADVISORY = {
    "capacity": "the server did not use the processor it was given, so this is no capacity",
    SATURATION: "the server hardly carries this rate; its latency grows with the run's length",
    FAILURES: "requests failed: in a latency each counts as its timeout, in a rate not at all",
}


@dataclass(frozen=True)
class Entry:
    """One figure of one arm, and its ratio to the control's with the ends of its interval.

    The control has neither; a dash is a ratio that could not be taken.
    """

    value: str
    ratio: str
    bounds: str
    tone: Tone


@dataclass(frozen=True)
class Row:
    """One arm under one test; ``rounds`` says how many counted, ``lost`` what did not."""

    arm: str
    role: str  # "control", "on /" where it stands in with another test, or empty
    entries: tuple[Entry, ...]
    rounds: str
    lost: str


@dataclass(frozen=True)
class Section:
    """One test with its headline figures and a row for each arm that took part."""

    test: str
    title: str
    figures: tuple[Figure, ...]
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    span: str  # what stands in brackets behind a ratio


def sections(summary: Summary) -> tuple[Section, ...]:
    """Return the verdict of every test that somebody was put to."""
    return tuple(
        Section(
            test,
            title(test),
            summary.verdicts(test),
            _rows(summary, test),
            tuple(_remarks(summary, test)),
            _span(summary, test),
        )
        for test in summary.campaign.tests
        if any(cell.test == test for cell in summary.cells)
    )


def _span(summary: Summary, test: str) -> str:
    """Return what the brackets hold; the few rounds of a long test have no interval."""
    bounded = any(one.test == test and one.interval for one in summary.ratios)
    return INTERVAL if bounded else "range"


def _remarks(summary: Summary, test: str) -> Iterator[str]:
    for cell in summary.cells:
        if cell.test == test:
            for remark, count in cell.remarks.items():
                meaning = _ADVISORY.get(remark, remark)
                yield f"{cell.arm}, {count} of {cell.valid} valid rounds: {meaning}"
            held = cell.spreads.get("held_rps")
            if held and held.n > 1:
                yield f"{cell.arm}: the rate held was {number(held.low)} to {number(held.high)}/s"


def title(test: str) -> str:
    """Return what ``test`` does, in a few words."""
    workload = WORKLOADS.get(test)
    if workload is None:
        return test
    verb = "echo over" if workload.transport == "websocket" else "GET"
    ask = f"{verb} {workload.path}"
    if workload.mode == "open":
        return f"{ask} at {workload.rate_rps:.0f}/s"
    if workload.over_layer:
        return f"GET over the layer, {workload.concurrency} clients"
    if workload.mode == "closed":
        return f"{ask}, {workload.concurrency} clients"
    return f"{ask}, highest rate"


def _rows(summary: Summary, test: str) -> tuple[Row, ...]:
    figures = summary.verdicts(test)
    bounded = _span(summary, test) == INTERVAL
    rows = [
        _row(summary, cell, figures, _role(summary, cell), bounded=bounded)
        for arm in summary.arms
        if (cell := summary.cell(arm, test))
    ]
    if stand_in := summary.stand_in(test):
        role = f"on {WORKLOADS[stand_in.test].path}"
        rows.insert(0, _row(summary, stand_in, figures, role, bounded=bounded))
    return tuple(rows)


def _role(summary: Summary, cell: Cell) -> str:
    return "control" if cell.arm == summary.campaign.control else ""


def _row(
    summary: Summary, cell: Cell, figures: tuple[Figure, ...], role: str, *, bounded: bool
) -> Row:
    return Row(
        arm=cell.arm,
        role=role,
        entries=tuple(
            _entry(
                cell,
                figure,
                summary.ratio(cell.arm, cell.test, figure.name),
                is_control=cell.arm == summary.campaign.control,
                bounded=bounded,
            )
            for figure in figures
        ),
        rounds=f"{cell.valid}/{summary.campaign.rounds_of(cell.test)}",
        lost=lost(cell),
    )


def lost(cell: Cell) -> str:
    """Return what of ``cell`` did not count, such as ``1 discarded, 2 failed``."""
    parts = [(cell.discarded, "discarded"), (cell.failed, "failed")]
    return ", ".join(f"{count} {what}" for count, what in parts if count)


def _entry(
    cell: Cell, figure: Figure, ratio: Ratio | None, *, is_control: bool, bounded: bool
) -> Entry:
    value = number(cell.median(figure.name))
    if ratio is None:
        return Entry(value, "" if is_control else MISSING, "", "unknown")
    means = tone(ratio.interval, figure, ratio.resolution)
    return Entry(value, times(ratio.estimate), span(ratio, bounded=bounded), means)


def tone(found: Interval | None, figure: Figure, resolution: float = 1.0) -> Tone:
    """Return what a ratio of ``figure`` means for who picks a deployment; only an interval says.

    One that reaches to within ``resolution`` of 1 tells no difference.
    """
    if found is None:
        return "unknown"
    if not found.beyond(resolution):
        return "same"
    return "better" if (found.estimate < 1) == (figure.better == "lower") else "worse"


def times(ratio: float) -> str:
    """Return a ratio with as many digits as a reader can use."""
    if ratio >= 100:
        return f"{ratio:,.0f}"
    # Near 1 the third decimal may decide on which side of it an interval ends.
    return f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 1.1 else f"{ratio:.3f}"


def bounds(ratio: Ratio, joint: str = "–") -> str:
    """Return the ends of ``extent`` in words; a single round has none."""
    if ratio.interval is None and ratio.spread.n == 1:
        return "1 round"
    low, high = extent(ratio)
    return f"{times(low)}{joint}{times(high)}"


def span(ratio: Ratio, *, bounded: bool) -> str:
    """Return ``bounds``; a range among intervals, which is what ``bounded`` says, by its name."""
    few = bounded and ratio.interval is None and ratio.spread.n > 1
    return f"range of {ratio.spread.n}: {bounds(ratio)}" if few else bounds(ratio)


def extent(ratio: Ratio) -> tuple[float, float]:
    """Return the ends of the interval, or of the range over the rounds where there is none."""
    if ratio.interval:
        return ratio.interval.low, ratio.interval.high
    return ratio.spread.low, ratio.spread.high
