"""Conclusions in words, drawn from the intervals and from nothing else.

A quick campaign has no intervals, so it says what it saw and concludes nothing.
"""

from collections.abc import Iterable
from math import prod

from bench.figures import number
from bench.findings import bounds, extent, times, title
from bench.gates import SATURATION
from bench.summary import Ratio, Summary
from bench.verdict import faults

LAG_AIM_MS = 0.2  # of the 99th percentile at 300 requests/s
INVALID = "This campaign is invalid"


def conclusions(summary: Summary) -> dict[str, list[str]]:
    """Return, for each test, a sentence for each arm and for each pair that differs in one factor.

    Tests stand by their title; one without a ratio is left out.
    """
    found = {
        title(test): [
            sentence
            for ratios in (summary.ratios, summary.contrasts)
            for sentence in _sentences(summary, test, ratios)
        ]
        for test in summary.campaign.tests
    }
    return {head: sentences for head, sentences in found.items() if sentences}


def brackets(summary: Summary) -> str:
    """Return what stands in brackets behind each ratio."""
    if summary.quick:
        return "Medians of the rounds' ratios; in brackets, how far the rounds range."
    least = min((one.interval.confidence for one in summary.ratios if one.interval), default=0.95)
    return f"In brackets: the 95 % interval (exact: {100 * least:.1f} % or more)."


def _sentences(summary: Summary, test: str, ratios: Iterable[Ratio]) -> list[str]:
    pairs: dict[tuple[str, str], list[Ratio]] = {}
    for ratio in ratios:
        told = ratio.test == test and ratio.figure in summary.verdicts(test)
        if told and ratio.arm != summary.campaign.twin:
            pairs.setdefault((ratio.arm, ratio.base), []).append(ratio)
    told_apart, too_few = [], []
    for (arm, base), found in pairs.items():
        if summary.quick or any(ratio.interval for ratio in found):
            clauses = "; ".join(_clause(ratio, summary.quick) for ratio in found)
            saturated = _saturated(summary, test, (arm, base))
            told_apart.append(f"{arm} against {base}: {clauses}.{saturated}")
        else:
            too_few.append(f"{arm} against {base} ({found[0].spread.n})")
    if too_few:
        told_apart.append(f"Too few rounds to tell a difference: {', '.join(too_few)}.")
    return told_apart


def _clause(ratio: Ratio, quick: bool) -> str:
    label, span = ratio.figure.label, bounds(ratio, " to ")
    if ratio.interval is None and quick:
        return f"{label} was {times(ratio.estimate)} times as high ({span})"
    if ratio.interval is None:
        return f"{ratio.spread.n} valid rounds are too few to tell a difference in {label}"
    if not ratio.differs:
        beyond = "" if ratio.interval.contains(1.0) else " beyond the control's own"
        return f"no difference{beyond} can be told in {label} ({span})"
    return f"{label} is {times(ratio.estimate)} times as high ({span})"


def _saturated(summary: Summary, test: str, arms: tuple[str, str]) -> str:
    """Return what takes the meaning from a ratio of latencies: they grow with the run."""
    cells = [summary.cell(arm, test) for arm in arms] if summary.mode(test) == "open" else []
    return "".join(
        f" In {cell.remarks[SATURATION]} of {cell.valid} rounds {cell.arm} hardly carried the "
        "rate: its latency is of this run's length."
        for cell in cells
        if cell and SATURATION in cell.remarks
    )


def punctuality(summary: Summary) -> list[str]:
    """Return, for each test at a fixed rate, how close to its schedule the driver sent.

    Without that nobody could tell a slow server from a slow driver.
    """
    return [
        _punctuality(test, lags)
        for test in summary.campaign.tests
        if summary.mode(test) == "open" and (lags := _lags_ms(summary, test))
    ]


def _lags_ms(summary: Summary, test: str) -> dict[str, float]:
    """Return the 99th percentile of the schedule lag, by arm."""
    medians = {cell.arm: cell.median("lag_p99_ms") for cell in summary.cells if cell.test == test}
    return {arm: lag for arm, lag in medians.items() if lag is not None}


def _punctuality(test: str, lags_ms: dict[str, float]) -> str:
    latest = max(lags_ms, key=lambda arm: lags_ms[arm])
    missed = [arm for arm, lag in lags_ms.items() if lag >= LAG_AIM_MS]
    aim = f"missed by {' and '.join(missed)}" if missed else "kept by all"
    return (
        f"{title(test)}: 99 % of requests left at most {number(min(lags_ms.values()))} to "
        f"{number(lags_ms[latest])} ms after the moment they were due, by deployment (the median "
        f"of its rounds). The aim of {LAG_AIM_MS:g} ms is {aim}."
    )


def caution(summary: Summary) -> str | None:
    """Return what a reader must know before any figure, or None where nothing stands in the way."""
    if summary.campaign.finished is None:
        return "The campaign was interrupted: it holds fewer rounds than it set out to."
    warnings = []
    if summary.alarms:
        worst = "; ".join(_alarm(ratio) for ratio in summary.alarms)
        warnings.append(
            f"The control differs from itself: {worst}. Of {len(summary.twin_ratios)} such "
            f"intervals, chance alone leaves 1 outside of one or more in {_chance(summary):.0%} of "
            "campaigns. If it was not chance, something other than the deployments made a "
            "difference: nothing is called one here that is not further from 1."
        )
    if wrong := faults(summary):
        warnings.append(f"{INVALID}: {'; '.join(wrong)}.")
    return " ".join(warnings) or None


def _chance(summary: Summary) -> float:
    """Return how often an honest A/A pair raises an alarm, were its intervals independent."""
    return 1 - prod(ratio.interval.confidence for ratio in summary.twin_ratios if ratio.interval)


def _alarm(ratio: Ratio) -> str:
    return f"{ratio.figure.label} under {ratio.test} by {bounds(ratio, ' to ')}"


def twin(summary: Summary) -> str | None:
    """Return what the A/A pair says; None where the campaign had none."""
    ratios = summary.twin_ratios
    if not ratios:
        return None
    low, high = min(extent(one)[0] for one in ratios), max(extent(one)[1] for one in ratios)
    if summary.quick:
        kind, rule = "ratios to itself ranged", "Differences within that mean nothing."
    else:
        kind = f"{len(ratios)} intervals of its ratio to itself reach"
        rule = (
            "A ratio is called a difference only where all of its interval is further from 1 than "
            "that of the same figure in the same test."
        )
    return (
        f"The control was measured twice in every round, as if it were two variants: the {kind} "
        f"from {low:.2f} to {high:.2f}. {rule}"
    )


def standing(summary: Summary) -> str:
    """Return what kind of evidence this campaign is."""
    rounds = f"{summary.campaign.rounds} round{'s' * (summary.campaign.rounds != 1)}"
    if summary.campaign.provenance.get("uncommitted_changes"):
        rounds += ", of files that differ from the commit it names"
    if summary.quick:
        return (
            f"A quick campaign of {rounds}: medians and ranges, from which nothing is "
            "concluded. Intervals need the rounds of `make bench-full`."
        )
    return (
        f"A full campaign of {rounds}. A ratio stands with its 95 % interval; where that contains "
        "1, or what the control differs by from itself, no difference can be told."
    )
