"""Whether a campaign may be believed: what is wrong with it, in sentences, or nothing."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from bench.intervals import ratio_interval
from bench.summary import Ratio, Summary

# What the A/A pair differs by is no reason to discard a campaign: nothing in its report is called a
# difference that is not larger. A gross one is, because it means that something is broken.
TWIN_SHARE = 0.1
# How often an honest campaign may fail by chance, all its A/A ratios together.
TWIN_CHANCE = 0.05
# What the hypervisor's other guests may spoil; an interval counts the rounds that it has.
MISSING_SHARE = 0.1
# A quick campaign concludes nothing, and has no time to wait for a better hour.
QUICK_MISSING_SHARE = 1 / 3
# Three short rounds are all on one side by chance in one honest campaign of four, for each figure,
# and a 99th percentile of 3,000 replies varies by a fifth: only a gross difference says something.
QUICK_TWIN_SHARE = 0.4


def faults(summary: Summary) -> list[str]:
    """Return why a campaign that came to its end is invalid, empty where it is not.

    It is valid if every test of every arm has a valid sample in each round that it was planned
    for, one in ten excepted (one in three of a quick campaign), and the two arms of the A/A pair
    agree.
    """
    return [*_gaps(summary), *_twins_apart(summary)]


def _gaps(summary: Summary) -> Iterator[str]:
    """Yield a sentence for the tests of an arm that lack the same rounds for the same reason."""
    share = QUICK_MISSING_SHARE if summary.quick else MISSING_SHARE
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cell in summary.cells:
        asked_for = range(1, summary.campaign.rounds_of(cell.test) + 1)
        valid = {number for spread in cell.spreads.values() for number in spread.rounds}
        missing = [number for number in asked_for if number not in valid]
        if len(missing) > share * len(asked_for):
            why = _reasons(summary, cell.arm, cell.test, missing)
            alike[cell.arm, f"no valid sample in {_rounds(missing)}: {why}"].append(cell.test)
    for (name, what), tests in alike.items():
        yield f"{name}, {' and '.join(tests)}: {what}"


def _rounds(numbers: Sequence[int]) -> str:
    word = "round" if len(numbers) == 1 else "rounds"
    return f"{word} {', '.join(map(str, numbers))}"


def _reasons(summary: Summary, arm: str, test: str, missing: Sequence[int]) -> str:
    """Return what kept samples from counting, each gate once, the most frequent first."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for failure in summary.failures:
        if (failure.arm, failure.test) == (arm, test) and failure.round in missing:
            reasons[failure.reason].append(failure.reason)
    for discard in summary.discards:
        if (discard.arm, discard.test) == (arm, test) and discard.round in missing:
            for gate, reason in discard.reasons.items():
                reasons[gate].append(f"{gate} ({reason})")
    ordered = sorted(reasons.values(), key=len, reverse=True)
    return "; ".join(texts[-1] for texts in ordered) or "not measured"


def _twins_apart(summary: Summary) -> Iterator[str]:
    ratios = summary.twin_ratios
    for ratio in ratios:
        if _apart(ratio, 1 - TWIN_CHANCE / len(ratios), quick=summary.quick):
            yield (
                f"A/A pair: {ratio.arm} has {ratio.estimate:.2f} times the {ratio.figure.label} "
                f"of {ratio.base} in {ratio.test}, and is the same deployment"
            )


def _apart(ratio: Ratio, confidence: float, *, quick: bool) -> bool:
    """Whether twins differ by more than chance, and by enough to matter.

    ``confidence`` is asked of the interval, as far as the rounds are enough for it. Without an
    interval the sign of every round stands in for one.
    """
    if ratio.interval is not None:
        found = ratio_interval(list(ratio.spread.rounds.values()), confidence) or ratio.interval
        return not found.contains(1.0) and abs(found.estimate - 1) > TWIN_SHARE
    one_side = ratio.spread.low > 1 or ratio.spread.high < 1
    share = QUICK_TWIN_SHARE if quick else TWIN_SHARE
    return ratio.spread.n > 1 and one_side and abs(ratio.estimate - 1) > share
