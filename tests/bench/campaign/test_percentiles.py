"""Percentiles where requests failed: none of them may be left out."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bench.cells import cell_of
from bench.figures import values
from bench.records import Load, Sample


def near(value_ms: float) -> Any:
    return pytest.approx(value_ms, rel=0.01)


def test_failed_requests_count_as_the_timeout_in_every_percentile(
    make_sample: Callable[..., Sample], make_load: Callable[..., Load]
) -> None:
    load = make_load(sent=2900, ok=2700, error=50, timeout=150, dropped=100, timeout_s=10.0)
    sample = make_sample(load=load)
    found = values(sample)
    assert found["p50_ms"] == near(2)
    assert found["p90_ms"] == near(2)
    assert found["p95_ms"] == near(10_000)
    assert found["p99_ms"] == near(10_000)
    curve = {point.percentile: point.latency_ms for point in cell_of([sample]).curve}
    assert curve[90] == near(2)
    assert curve[92.5] == near(10_000)


def test_reply_slower_than_the_timeout_stays_the_slowest(
    make_sample: Callable[..., Sample],
    make_load: Callable[..., Load],
    payload: Callable[[Sequence[int]], str],
) -> None:
    slow = payload([2000] * 2000 + [12_000_000] * 20)
    load = make_load(sent=2020, ok=2020, dropped=10, latency_us=slow, timeout_s=10.0)
    assert values(make_sample(load=load))["p999_ms"] == near(12_000)
