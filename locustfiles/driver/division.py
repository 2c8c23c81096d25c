"""One load on several workers: what each of them does, and what all of them saw. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hdrh.histogram import HdrHistogram

from .options import BadOption
from .record import payload

DIVIDED = ("clients", "connections", "requests", "max_in_flight")
HISTOGRAMS = ("latency_us", "error_latency_us", "lag_us", "connect_us")
COUNTED = ("scheduled", "sent", "ok", "error", "timeout", "dropped", "unasked")
BUCKET_COUNTS = ("sent", "ok", "error", "timeout", "dropped")
TALLIES = ("error_kinds", "counters", "socket_errors")


@dataclass(frozen=True)
class Share:
    """Which of how many workers this is. One that works alone is the first of one."""

    index: int = 0
    workers: int = 1

    def of(self, whole: int) -> int:
        """Return this worker's part of ``whole`` things; all parts together are the whole."""
        return whole // self.workers + (self.index < whole % self.workers)


def divided(values: Mapping[str, Any], share: Share) -> dict[str, Any]:
    """Return the options of one worker. Raises ``BadOption`` for what would leave one without.

    The rate stays as it is: a worker sends every so manyeth of the arrivals (``arrivals``).
    """
    parts = dict(values)
    for name in DIVIDED:
        whole = values.get(name)
        if not whole:
            continue
        if whole < share.workers:
            flag = f"--{name.replace('_', '-')}"
            raise BadOption(f"{flag} {whole}: fewer than the {share.workers} workers")
        parts[name] = share.of(whole)
    return parts


def merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the results of several workers as one, as if one process had seen it all.

    Counts are added and so are the histograms, which makes their percentiles those of all
    requests. The seconds of each worker count from its own start; for their percentiles each
    bucket carries its ``ok_us``, which is left out of what is returned.
    """
    first = parts[0]
    elapsed_s, started_s = _span(parts)
    histograms = {
        name: _added([part[name] for part in parts]) for name in HISTOGRAMS if name in first
    }
    return {
        **{name: value for name, value in first.items() if name != "boot_id"},
        **{name: sum(part[name] for part in parts) for name in COUNTED if name in first},
        **{name: _tallied(parts, name) for name in TALLIES if name in first},
        **{name: payload(one) for name, one in histograms.items()},
        "rate_rps": first["rate_rps"],
        "concurrency": _total(parts, "concurrency"),
        "elapsed_s": elapsed_s,
        "started_monotonic_s": started_s,
        "inflight_mean": _in_flight(parts, elapsed_s),
        "buckets": _buckets(parts),
        "warnings": list(dict.fromkeys(said for part in parts for said in part["warnings"])),
    }


def _span(parts: Sequence[Mapping[str, Any]]) -> tuple[float, float | None]:
    """Return how long it took in all, and when it began: None if that is on several clocks."""
    if len({part["boot_id"] for part in parts}) > 1:
        return max(part["elapsed_s"] for part in parts), None
    start_s = min(part["started_monotonic_s"] for part in parts)
    end_s = max(part["started_monotonic_s"] + part["elapsed_s"] for part in parts)
    return end_s - start_s, start_s


def _in_flight(parts: Sequence[Mapping[str, Any]], elapsed_s: float) -> float:
    area = sum(part["inflight_mean"] * part["elapsed_s"] for part in parts)
    return area / elapsed_s if elapsed_s > 0 else 0.0


def _total(parts: Sequence[Mapping[str, Any]], name: str) -> int | None:
    values = [part[name] for part in parts if part[name] is not None]
    return sum(values) if values else None


def _tallied(parts: Sequence[Mapping[str, Any]], name: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part[name])
    return dict(found)


def _added(payloads: Sequence[str]) -> HdrHistogram:
    total = HdrHistogram.decode(payloads[0].encode())
    for each in payloads[1:]:
        total.add(HdrHistogram.decode(each.encode()))
    return total


def _buckets(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    longest = max(len(part["buckets"]) for part in parts)
    return [
        _bucket([part["buckets"][second] for part in parts if second < len(part["buckets"])])
        for second in range(longest)
    ]


def _bucket(buckets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    latencies = _added([bucket["ok_us"] for bucket in buckets])
    some = latencies.get_total_count() > 0
    return {
        "start_s": buckets[0]["start_s"],
        **{name: sum(bucket[name] for bucket in buckets) for name in BUCKET_COUNTS},
        "p50_ms": latencies.get_value_at_percentile(50) / 1000 if some else None,
        "p99_ms": latencies.get_value_at_percentile(99) / 1000 if some else None,
    }
