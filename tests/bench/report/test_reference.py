"""Every file of earlier figures is read, and says what its study published."""

import pytest

from bench import reference
from bench.errors import BadInput
from bench.reference import FOLDER, Span
from bench.variants import HEADLINE


def test_latency_bars_of_2016_have_four_percentiles_a_setup():
    bars = {(bar.variant, bar.percentile): bar.latency_ms for bar in reference.latency_2016()}
    assert len(bars) == 8
    assert bars["gunicorn", 99] == 10
    assert bars["daphne-redis", 50] == 21


def test_latency_bars_of_2016_are_missing_for_ipc():
    assert "daphne-ipc" not in {bar.variant for bar in reference.latency_2016()}


def test_throughput_of_2016_names_the_latency_of_that_test():
    latencies = {row.variant: row.latency_ms for row in reference.throughput_2016()}
    assert latencies == {"gunicorn": 6, "daphne-redis": 12, "daphne-ipc": 35}


def test_series_of_2016_runs_for_a_minute_in_steps_of_five_seconds():
    points = [one for one in reference.series_2016() if one.variant == "daphne-ipc"]
    assert [point.end_s for point in points] == list(range(5, 60, 5))
    assert (points[0].requests_per_5s, points[-1].requests_per_5s) == (370, 70)


def test_setups_of_2016_are_the_headline_variants_of_today():
    assert [setup.variant for setup in reference.SETUPS_2016] == [one.name for one in HEADLINE]


def test_framework_baseline_keeps_django_apart_from_django_without_middleware():
    rates = {row.app: row.requests_rps for row in reference.framework_baseline()}
    assert rates["Django"] == 321
    assert rates["Django without middleware"] == 816


def test_http_balancing_keeps_ranges_and_gaps():
    first, *_, last = reference.http_balancing()
    assert first.figures["swarm_rps"] == Span(485, 837)
    assert first.figures["apache_errors"] == Span(3, 3)
    assert not first.keepalive
    assert last.figures["swarm_8_rps"] is None
    assert last.figures["gunicorn_8_rps"] == Span(9, 9)


def test_websocket_balancing_keeps_ranges_and_gaps():
    rows = reference.websocket_balancing()
    assert rows[0].figures["haproxy_rps"] == Span(295, 295)
    assert rows[0].figures["daphne_errors"] is None
    assert rows[-1].requests_per_connection == "pids"
    assert rows[-1].connections is None
    assert [row.connections for row in rows if row.detailed] == [400, 400, 400]


def test_fanout_of_sockets_and_of_polling_stand_side_by_side():
    rows = reference.websocket_fanout()
    assert [row.transport for row in rows] == ["websocket", "http long polling", "websocket"]
    assert rows[1].server_cpu_percent is None


def test_setup_unknown_today_is_refused():
    with pytest.raises(BadInput, match="mod_wsgi"):
        reference._variant("mod_wsgi")


def test_readme_names_the_source_of_every_file():
    readme = (FOLDER / "README.md").read_text()
    files = {path.name for path in FOLDER.glob("*.csv")}
    assert files
    rows = [line.split("|")[1:3] for line in readme.splitlines() if line.startswith("| `")]
    assert {name.strip(" `") for name, _ in rows} == files
    assert all(study.strip() for _, study in rows)
