"""One arm under one test: the figures of its valid rounds, and what had to be left out."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from hdrh.histogram import HdrHistogram

from bench.figures import FIGURES, latencies, percentile_ms, values
from bench.records import Load, Sample, Step

SERIES_BUCKET_S = 5  # the buckets of the chart of 2016
# Below this many samples beyond it, a percentile is one request's luck.
_BEYOND = 5
_CURVE = (0, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 92.5, 95, 97.5, 98, 99)
_CURVE_TAIL = (99.25, 99.5, 99.75, 99.8, 99.9, 99.95, 99.975, 99.99, 99.995, 99.999)


@dataclass(frozen=True)
class Spread:
    """A figure over the valid rounds of a cell."""

    median: float
    low: float
    high: float
    rounds: Mapping[int, float]  # round -> value

    @property
    def n(self) -> int:
        return len(self.rounds)


@dataclass(frozen=True)
class Counts:
    """Requests over all valid rounds."""

    sent: int
    ok: int
    error: int
    timeout: int
    dropped: int

    @property
    def failed(self) -> int:
        return self.error + self.timeout + self.dropped


@dataclass(frozen=True)
class Bucket5s:
    """Replies in the five seconds up to ``end_s``: the median over the rounds."""

    end_s: float
    ok: float


@dataclass(frozen=True)
class CurvePoint:
    percentile: float
    latency_ms: float


@dataclass(frozen=True)
class Second:
    """One second of one attempt, valid or not, for the time strips."""

    round: int
    attempt: int
    second: float
    ok: int
    failed: int
    p99_ms: float | None
    valid: bool


@dataclass(frozen=True)
class Cell:
    """One arm under one test. Without a valid round its figures, counts and curve are missing."""

    arm: str
    variant: str
    test: str
    mode: str | None
    valid: int
    discarded: int
    failed: int
    spreads: Mapping[str, Spread]
    counts: Counts | None
    curve: tuple[CurvePoint, ...]
    series: tuple[Bucket5s, ...]
    strip: tuple[Second, ...]
    steps: tuple[Step, ...]
    remarks: Mapping[str, int]  # what valid rounds say against their figure's name, and how often

    def median(self, figure: str) -> float | None:
        return self.spreads[figure].median if figure in self.spreads else None


def cell_of(samples: Sequence[Sample]) -> Cell:
    """Return what ``samples``, all of one arm and test, in their order, amount to."""
    valid = _counted(samples)
    loads = [sample.load for sample in valid if sample.load]
    return Cell(
        arm=samples[0].arm,
        variant=samples[0].variant,
        test=samples[0].test,
        mode=next((sample.load.mode for sample in samples if sample.load), None),
        valid=len(valid),
        discarded=sum(discarded(sample) for sample in samples),
        failed=sum(sample.failure is not None for sample in samples),
        spreads=_spreads(valid),
        counts=_counts(loads),
        curve=_curve(loads),
        series=_series(loads),
        strip=tuple(second for sample in samples for second in _seconds(sample)),
        steps=tuple(step for load in loads for step in load.steps),
        remarks=Counter(remark for sample in valid for remark in _remarks(sample)),
    )


def _remarks(sample: Sample) -> Iterator[str]:
    """Yield each advisory gate that ``sample`` missed, and what the generator warned of.

    By their names, because the reasons carry figures and would hardly ever be counted together.
    """
    yield from (gate.name for gate in sample.gates if gate.advisory and not gate.ok)
    yield from sample.load.warnings if sample.load else ()


def _counted(samples: Sequence[Sample]) -> list[Sample]:
    """Return one valid sample a round: the last, should an earlier one have been good too."""
    return list({sample.round: sample for sample in samples if sample.valid}.values())


def discarded(sample: Sample) -> bool:
    return sample.failure is None and not sample.valid


def _spreads(valid: Sequence[Sample]) -> dict[str, Spread]:
    by_round = {sample.round: values(sample) for sample in valid}
    found = {
        name: {number: figures[name] for number, figures in by_round.items() if name in figures}
        for name in FIGURES
    }
    return {name: spread(rounds) for name, rounds in found.items() if rounds}


def spread(rounds: Mapping[int, float]) -> Spread:
    """Return the median and range of at least one round."""
    return Spread(median(rounds.values()), min(rounds.values()), max(rounds.values()), rounds)


def _counts(loads: Sequence[Load]) -> Counts | None:
    if not loads:
        return None
    return Counts(
        **{
            name: sum(getattr(load, name) for load in loads)
            for name in ("sent", "ok", "error", "timeout", "dropped")
        }
    )


def _curve(loads: Sequence[Load]) -> tuple[CurvePoint, ...]:
    """Return the merged latencies by percentile, as far out as the count of requests carries."""
    merged = merge([latencies(load) for load in loads])
    count = merged.get_total_count() if merged else 0
    carried = [p for p in (*_CURVE, *_CURVE_TAIL) if count * (100 - p) / 100 >= _BEYOND]
    found = ((percentile, percentile_ms(merged, percentile)) for percentile in carried)
    return tuple(CurvePoint(percentile, ms) for percentile, ms in found if ms is not None)


def merge(histograms: Sequence[HdrHistogram]) -> HdrHistogram | None:
    """Return all ``histograms`` in one; None of nothing."""
    if not histograms:
        return None
    merged = HdrHistogram.decode(histograms[0].encode())
    for one in histograms[1:]:
        merged.add(one)
    return merged


def _series(loads: Sequence[Load]) -> tuple[Bucket5s, ...]:
    """Return replies per five seconds, only of buckets that every round filled."""
    rounds = [_per_bucket(load) for load in loads]
    common = set.intersection(*(set(one) for one in rounds)) if rounds else set()
    return tuple(
        Bucket5s((index + 1) * SERIES_BUCKET_S, median(one[index] for one in rounds))
        for index in sorted(common)
    )


def _per_bucket(load: Load) -> dict[int, int]:
    ordered = sorted(load.buckets, key=lambda one: one.start_s)
    grouped = groupby(ordered, key=lambda one: int(one.start_s // SERIES_BUCKET_S))
    seconds = {index: list(group) for index, group in grouped}
    return {
        index: sum(second.ok for second in group)
        for index, group in seconds.items()
        if len(group) == SERIES_BUCKET_S
    }


def _seconds(sample: Sample) -> list[Second]:
    buckets = sample.load.buckets if sample.load else ()
    return [
        Second(
            round=sample.round,
            attempt=sample.attempt,
            second=bucket.start_s,
            ok=bucket.ok,
            failed=bucket.error + bucket.timeout + bucket.dropped,
            p99_ms=bucket.p99_ms,
            valid=sample.valid,
        )
        for bucket in buckets
    ]
