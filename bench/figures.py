"""What one valid sample says in numbers: each figure's name, unit and rule, written once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from hdrh.histogram import HdrHistogram

from bench.records import Load, Sample

PERCENTILES = {"p50_ms": 50.0, "p90_ms": 90.0, "p95_ms": 95.0, "p99_ms": 99.0, "p999_ms": 99.9}

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True)
class Figure:
    """``value`` gives None where the sample did not measure it.

    ``headline`` names the modes of load in whose verdict the figure stands.
    """

    name: str
    label: str
    unit: str
    better: Better
    value: Callable[[Sample], float | None]
    headline: tuple[str, ...] = ()
    heading: str = ""  # of a column in the verdict table, unit included
    test: str | None = None  # the only test it belongs to

    @property
    def has_ratio(self) -> bool:
        return self.better != "neither"


def histogram(payload: str) -> HdrHistogram:
    """Return the histogram (microseconds) in a base64 HdrHistogram V2 ``payload``."""
    return _decoded(payload)


@lru_cache(maxsize=512)
def _decoded(payload: str) -> HdrHistogram:
    """Decoding takes a millisecond and each figure asks again; nobody writes to the result."""
    return HdrHistogram.decode(payload.encode())


def latencies(load: Load) -> HdrHistogram:
    """Return the latencies of all requests, in microseconds.

    One that failed, or never left because too many were in flight, counts as having taken the
    timeout: that is the least a client would have waited. Left out, it would make a server that
    drops what it cannot carry look quick.
    """
    failed = load.error + load.timeout + load.dropped
    if not failed or load.timeout_s is None:
        return histogram(load.latency_us)
    return _with_failures(load.latency_us, failed, int(load.timeout_s * 1e6))


@lru_cache(maxsize=512)
def _with_failures(payload: str, failed: int, timeout_us: int) -> HdrHistogram:
    found = HdrHistogram.decode(payload.encode())
    found.record_value(max(timeout_us, found.get_max_value()), failed)
    return found


def percentile_ms(merged: HdrHistogram, percentile: float) -> float | None:
    """Return the latency at ``percentile`` (0 to 100); None of an empty histogram."""
    if not merged.get_total_count():
        return None
    return float(merged.get_value_at_percentile(percentile)) / 1000


def _percentile(percentile: float) -> Callable[[Sample], float | None]:
    def value(sample: Sample) -> float | None:
        return percentile_ms(latencies(sample.load), percentile) if sample.load else None

    return value


def _lag_p99_ms(sample: Sample) -> float | None:
    return percentile_ms(histogram(sample.load.lag_us), 99.0) if sample.load else None


def _rps(sample: Sample) -> float | None:
    load = sample.load
    if not load or load.elapsed_s <= 0:
        return None
    # A request that hangs makes the driver wait at the end, when nothing is sent any more.
    return load.ok / (min(load.elapsed_s, load.duration_s) if load.timeout else load.elapsed_s)


def _held_rps(sample: Sample) -> float | None:
    return sample.load.held_rps if sample.load else None


def _failed_rps(sample: Sample) -> float | None:
    return sample.load.failed_rps if sample.load else None


def _hung(sample: Sample) -> float | None:
    return float(sample.load.timeout) if sample.load else None


def _rps_per_cpu_s(sample: Sample) -> float | None:
    if not sample.load or not sample.server:
        return None
    cpu_s = sample.server.cpu_s
    return sample.load.ok / cpu_s if cpu_s > 0 else None


def _per_request_us(cpu_s: float, load: Load) -> float | None:
    return cpu_s / load.ok * 1e6 if load.ok else None


def _cpu_user_us(sample: Sample) -> float | None:
    if not sample.load or not sample.server:
        return None
    return _per_request_us(sample.server.cpu_user_s, sample.load)


def _cpu_system_us(sample: Sample) -> float | None:
    if not sample.load or not sample.server:
        return None
    return _per_request_us(sample.server.cpu_system_s, sample.load)


def _cpu_max_cores(sample: Sample) -> float | None:
    return sample.server.cpu_max_cores if sample.server else None


def _pss_mb(sample: Sample) -> float | None:
    if not sample.server or sample.server.pss_max_bytes is None:
        return None
    return sample.server.pss_max_bytes / 1e6


def _processes(sample: Sample) -> float | None:
    return float(sample.server.processes_max) if sample.server else None


FIGURES = {
    figure.name: figure
    for figure in (
        Figure("p50_ms", "p50", "ms", "lower", _percentile(50.0), ("open",), "p50 ms"),
        Figure("p90_ms", "p90", "ms", "lower", _percentile(90.0)),
        Figure("p95_ms", "p95", "ms", "lower", _percentile(95.0)),
        Figure("p99_ms", "p99", "ms", "lower", _percentile(99.0), ("open",), "p99 ms"),
        Figure("p999_ms", "p99.9", "ms", "lower", _percentile(99.9)),
        # In an open loop the rate is what was asked for, so it tells nobody apart.
        Figure("rps", "requests/s", "/s", "higher", _rps, ("closed",), "requests/s"),
        Figure(
            "hung",
            "clients without a reply at the end",
            "",
            "neither",
            _hung,
            ("closed",),
            "hung clients",
            test="minute",
        ),
        Figure(
            "held_rps",
            "highest rate held",
            "/s",
            "higher",
            _held_rps,
            ("autothrottle",),
            "held, /s",
        ),
        Figure(
            "failed_rps",
            "lowest rate that did not hold",
            "/s",
            "neither",
            _failed_rps,
            ("autothrottle",),
            "did not hold, /s",
            test="capacity",
        ),
        Figure(
            "rps_per_cpu_s",
            "requests per server-CPU-second",
            "/CPU-s",
            "higher",
            _rps_per_cpu_s,
            ("closed",),
            "per CPU-s",
        ),
        Figure("cpu_user_us", "CPU per request, user", "µs", "neither", _cpu_user_us),
        Figure("cpu_system_us", "CPU per request, system", "µs", "neither", _cpu_system_us),
        Figure("cpu_max_cores", "server CPU, busiest moment", "cores", "neither", _cpu_max_cores),
        Figure("pss_mb", "memory (PSS), highest", "MB", "neither", _pss_mb),
        Figure("processes", "processes", "", "neither", _processes),
        Figure("lag_p99_ms", "schedule lag p99", "ms", "neither", _lag_p99_ms),
    )
}


def values(sample: Sample) -> dict[str, float]:
    """Return the figures that ``sample`` measured, by name."""
    found = {figure.name: figure.value(sample) for figure in FIGURES.values()}
    return {name: value for name, value in found.items() if value is not None}


def headline(mode: str, test: str | None = None) -> tuple[Figure, ...]:
    """Return the figures that stand in the verdict of ``test`` with this ``mode`` of load."""
    return tuple(
        figure
        for figure in FIGURES.values()
        if mode in figure.headline and figure.test in (None, test)
    )


def number(value: float | None) -> str:
    """Return ``value`` with three significant digits, whole from 100 on; an en dash for None."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 0 if value == int(value) and abs(value) >= 1 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"


def quantity(value: float | None, unit: str) -> str:
    """Return ``value`` with its ``unit``; an en dash for None."""
    if value is None or not unit:
        return number(value)
    joint = "" if unit.startswith("/") else " "
    return f"{number(value)}{joint}{unit}"
