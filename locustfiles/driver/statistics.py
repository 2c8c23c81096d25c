"""Keeps Locust's own statistics true: its web UI, its console table and its CSV files.

Locust rounds response times to whole milliseconds below 100 ms and to two digits above, and cuts
them to whole milliseconds again where it writes CSV. A deployment that answers in 0.7 ms would be
shown as 1 ms, and one that got 40 % slower as no different.
"""

from typing import Any

SIGNIFICANT_DIGITS = 3


def bucket_response_time(response_time: float) -> float:
    """Return ``response_time`` (ms) to 3 significant digits, and no finer than a microsecond.

    Locust keeps a count for each distinct value: this bounds them at 900 a decade.
    """
    return float(f"{response_time:.{SIGNIFICANT_DIGITS}g}") if response_time >= 0.001 else 0.0


def _percentile_fields(
    writer: Any, stats_entry: Any, use_current: bool = False
) -> list[float] | list[str]:
    """Return the percentiles for a CSV row, uncut."""
    if not stats_entry.num_requests:
        return writer.percentiles_na
    read = (
        stats_entry.get_current_response_time_percentile
        if use_current
        else stats_entry.get_response_time_percentile
    )
    return [read(percentile) or 0 for percentile in writer.percentiles_to_report]


def install() -> None:
    """Put these in the place of Locust's."""
    # Not above: importing Locust replaces half of the standard library by gevent's.
    from locust import stats

    stats.bucket_response_time = bucket_response_time
    stats.StatsCSV._percentile_fields = _percentile_fields
