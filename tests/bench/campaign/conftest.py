"""Measurements made up as a test needs them."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from bench.records import Bucket, Load, Machine, Sample, Usage


def histogram(values_us: Iterable[int]) -> str:
    recorded = HdrHistogram(1, 3_600_000_000, 3)
    for value in values_us:
        recorded.record_value(value)
    return bytes(recorded.encode()).decode()


@pytest.fixture
def payload() -> Callable[[Iterable[int]], str]:
    """Returns a function from microseconds to what a ``Load`` holds of them."""
    return histogram


@pytest.fixture
def make_load() -> Callable[..., Load]:
    """Returns a function that makes a flawless ``Load``, but for what it is told.

    3,000 replies in 10 s, each after 2 ms.
    """

    def make(**changes: Any) -> Load:
        counts = {"sent": 3000, "ok": 3000, "error": 0, "timeout": 0, "dropped": 0}
        counts |= {name: changes[name] for name in counts if name in changes}
        values: dict[str, Any] = {
            "test": "latency",
            "mode": "open",
            "transport": "http",
            "url": "http://127.0.0.1:8000/",
            "connection": "close",
            "rate_rps": 300.0,
            "concurrency": None,
            "duration_s": 10.0,
            "elapsed_s": 10.0,
            "scheduled": counts["sent"] + counts["dropped"],
            "error_kinds": {},
            "latency_us": histogram([2000] * counts["ok"]),
            "error_latency_us": histogram([]),
            "lag_us": histogram([50] * counts["sent"]),
            "inflight_mean": 300 * 0.00195,
            "buckets": (Bucket(start_s=0.0, p50_ms=2.0, p99_ms=2.0, **counts),),
            "started_monotonic_s": 100.0,
        }
        return Load(**(values | counts | changes))

    return make


@pytest.fixture
def make_usage() -> Callable[..., Usage]:
    """Returns a function that makes the ``Usage`` of half a core over 10 s, but for changes."""

    def make(**changes: Any) -> Usage:
        values: dict[str, Any] = {
            "cpu_user_s": 4.0,
            "cpu_system_s": 1.0,
            "cpu_max_cores": 0.6,
            "pss_max_bytes": 50_000_000,
            "rss_max_bytes": 60_000_000,
            "processes_max": 2,
            "cpu_busiest_process_cores": 0.4,
        }
        return Usage(**(values | changes))

    return make


@pytest.fixture
def make_machine() -> Callable[..., Machine]:
    """Returns a function that makes a ``Machine`` with nothing else to do, but for changes."""

    def make(**changes: Any) -> Machine:
        values = {"wall_s": 10.0, "busy_cores": 1.0, "foreign_cores": 0.01, "steal_cores": 0.0}
        return Machine(**(values | changes))

    return make


@pytest.fixture
def make_sample(
    make_load: Callable[..., Load],
    make_usage: Callable[..., Usage],
    make_machine: Callable[..., Machine],
) -> Callable[..., Sample]:
    """Returns a function that makes a valid ``Sample`` of gunicorn, but for changes."""

    def make(**changes: Any) -> Sample:
        values: dict[str, Any] = {
            "campaign": "20261121-120000",
            "arm": "gunicorn",
            "variant": "gunicorn",
            "test": "latency",
            "round": 1,
            "attempt": 1,
            "started": "2026-11-21T12:00:00+00:00",
            "load": make_load(),
            "server": make_usage(),
            "generator": make_usage(),
            "machine": make_machine(),
        }
        return Sample(**(values | changes))

    return make
