"""What the charts show: data, gaps and labels, read from their specifications."""

from dataclasses import replace

import pytest
import vl_convert

from bench.charts import charts
from bench.history import PERCENTILES_2016
from bench.theme import DARK, LIGHT, PALETTE, colours, picture, png, svg, wrapped


@pytest.fixture(scope="module")
def drawings(full):
    return {drawing.name: drawing for drawing in charts(full.summary)}


def rows(drawing, key):
    """Return the rows of data in ``drawing`` that have ``key``."""
    datasets = drawing.spec["datasets"].values()
    return [row for dataset in datasets for row in dataset if key in row]


def test_full_campaign_draws_every_chart(drawings):
    assert list(drawings) == [
        "ratios",
        "latency-2016",
        "throughput-2016",
        "percentiles",
        "load",
        "cpu",
        "strips-latency",
        "strips-throughput",
    ]


def test_chart_without_its_test_is_left_out(quick):
    names = {drawing.name for drawing in charts(quick.summary)}
    assert "load" not in names
    assert "percentiles" in names


def test_campaign_that_only_failed_draws_nothing(make):
    campaign = make.campaign("quick", rounds=1, tests=("latency", "throughput", "capacity"))
    broken = tuple(make.failed(s) for s in make.samples(campaign, duration_s=2))
    assert charts(make.canned(campaign, broken).summary) == ()


def test_latency_of_2016_has_its_bars_and_a_gap_for_ipc(drawings, full):
    bars = rows(drawings["latency-2016"], "percentile")
    then = {(b["variant"], b["percentile"]): b["latency_ms"] for b in bars if b["series"] == "2016"}
    assert then["daphne-redis", "99 %"] == 118
    assert "daphne-ipc" not in {variant for variant, _ in then}
    now = {(b["variant"], b["percentile"]): b["latency_ms"] for b in bars if b["series"] == "today"}
    cell = full.summary.cell("daphne-ipc", "latency")
    for percentile, figure in PERCENTILES_2016.items():
        assert now["daphne-ipc", f"{percentile} %"] == cell.median(figure)


def test_bar_far_longer_than_any_of_2016_is_cut_off_and_says_how_long_it_is(make):
    campaign = make.campaign("quick", rounds=1, tests=("latency",))
    samples = make.samples(campaign, duration_s=2, drift={"daphne-redis": 10_000.0})
    drawn = {one.name: one for one in charts(make.canned(campaign, tuple(samples)).summary)}
    bars = [b for b in rows(drawn["latency-2016"], "percentile") if b["series"] == "today"]
    cut = [b for b in bars if b["drawn_ms"] < b["latency_ms"]]
    assert {b["variant"] for b in cut} == {"daphne-redis"}
    assert {b["drawn_ms"] for b in cut} == {4 * 118}
    assert all(b["label"] == f"{b['latency_ms']:,.0f} ↑" for b in cut)
    assert "↑" in drawn["latency-2016"].note


def test_latency_today_that_was_not_measured_is_a_gap(make):
    campaign = make.campaign("quick", rounds=1, tests=("latency",))
    samples = make.samples(campaign, duration_s=2)
    broken = [make.failed(s) if s.arm == "daphne-redis" else s for s in samples]
    drawn = {one.name: one for one in charts(make.canned(campaign, tuple(broken)).summary)}
    bars = rows(drawn["latency-2016"], "percentile")
    assert {b["series"] for b in bars if b["variant"] == "daphne-redis"} == {"2016"}
    assert all(b["latency_ms"] > 0 for b in bars)


def test_throughput_draws_2016_beside_today(drawings, full):
    points = rows(drawings["throughput-2016"], "end_s")
    then = [p["requests"] for p in points if p["line"] == "gunicorn, 2016"]
    now = [p["requests"] for p in points if p["line"] == "gunicorn"]
    assert then[:3] == [7110, 7180, 7210]
    assert now[:4] == [one.ok for one in full.summary.cell("gunicorn", "throughput").series]
    assert {p["line"] for p in points} >= {"daphne-ipc, relayed", "daphne-ipc, 2016"}


def test_throughput_of_a_run_too_short_for_a_series_is_a_level(quick):
    drawn = {one.name: one for one in charts(quick.summary)}
    points = [p for p in rows(drawn["throughput-2016"], "end_s") if p["line"] == "gunicorn"]
    rate = quick.summary.cell("gunicorn", "throughput").median("rps")
    assert [(p["end_s"], p["requests"]) for p in points[:2]] == [(0, rate * 5), (60, rate * 5)]


def test_knee_is_the_median_of_the_rates_that_held(drawings, full):
    (knee,) = {
        row["rate_rps"] for row in rows(drawings["load"], "at_px") if "gunicorn" in row["label"]
    }
    assert knee == full.summary.cell("gunicorn", "capacity").median("held_rps")


def test_step_that_did_not_hold_is_a_cross(drawings):
    steps = rows(drawings["load"], "shape")
    crossed = {row["fill"] for row in steps if row["shape"] != "circle"}
    assert crossed == {"transparent"}
    assert len([row for row in steps if row["shape"] != "circle"]) == 30


def test_strip_shades_exactly_what_was_discarded(drawings):
    panel = next(
        one for one in drawings["strips-latency"].spec["vconcat"]
        if one["title"]["text"] == "daphne-redis"
    )  # fmt: skip
    assert panel["layer"][0]["mark"]["type"] == "rect"
    others = [one for one in drawings["strips-latency"].spec["vconcat"] if one is not panel]
    assert all(one["layer"][0]["mark"]["type"] != "rect" for one in others)


def test_strip_marks_the_seconds_in_which_requests_failed(make):
    campaign = make.campaign("quick", rounds=1, tests=("latency",))
    samples = make.samples(campaign, duration_s=3)
    first = samples[0]
    hurt = (replace(first.load.buckets[0], timeout=2), *first.load.buckets[1:])
    broken = (replace(first, load=replace(first.load, buckets=hurt)), *samples[1:])
    drawn = {one.name: one for one in charts(make.canned(campaign, broken).summary)}
    panel = drawn["strips-latency"].spec["vconcat"][0]
    assert panel["layer"][-1]["mark"]["shape"] == "triangle-up"


def test_cpu_stacks_system_time_on_user_time(drawings, full):
    cell = full.summary.cell("daphne-ipc", "relay")
    user_us, system_us = cell.median("cpu_user_us"), cell.median("cpu_system_us")
    bars = {(row["from_us"], row["to_us"]) for row in rows(drawings["cpu"], "from_us")}
    assert bars >= {(0, user_us), (user_us, user_us + system_us)}


def test_stand_in_of_the_control_is_not_drawn_alone(make):
    campaign = make.campaign("quick", rounds=1, tests=("throughput", "relay"))
    samples = make.samples(campaign, duration_s=2)
    broken = tuple(make.invalid(one) if one.test == "relay" else one for one in samples)
    drawn = {one.name: one for one in charts(make.canned(campaign, broken).summary)}
    assert [panel["title"]["text"] for panel in drawn["cpu"].spec["vconcat"]] == [
        "GET /, 10 clients"
    ]


def test_cpu_that_was_not_seen_is_left_out(make):
    campaign = make.campaign("quick", rounds=1, tests=("throughput",))
    samples = [replace(s, server=None) for s in make.samples(campaign, duration_s=2)]
    drawn = {one.name for one in charts(make.canned(campaign, tuple(samples)).summary)}
    assert "cpu" not in drawn
    assert "throughput-2016" in drawn


def test_colours_are_the_controls_for_its_twin_and_no_one_elses(full):
    found = colours(full.campaign)
    assert found["gunicorn"] == found["gunicorn (again)"] == PALETTE[0]
    assert len(set(found.values())) == 3


def test_ratio_rows_carry_interval_and_label(drawings, full):
    ratio = full.summary.ratio("daphne-redis", "latency", "p99_ms")
    row = next(r for r in rows(drawings["ratios"], "low") if r["ratio"] == ratio.estimate)
    assert (row["low"], row["high"]) == (ratio.interval.low, ratio.interval.high)
    assert row["arm"] == "daphne-redis"


@pytest.mark.parametrize("ink", [LIGHT, DARK])
def test_every_chart_is_drawn_by_the_library(drawings, ink):
    for drawing in drawings.values():
        drawn = svg(drawing, ink)
        assert drawn.startswith("<svg")
        assert drawing.title in drawn
        assert ink.paper in drawn


def test_picture_is_a_png(drawings):
    assert png(drawings["cpu"], LIGHT).startswith(b"\x89PNG")


def test_picture_has_its_title_and_the_spec_for_the_page_has_none(drawings):
    assert picture(drawings["cpu"], LIGHT)["title"]["text"] == "Server CPU per request"
    assert "title" not in drawings["cpu"].spec


def test_specs_compile_without_a_warning(drawings, capfd):
    for drawing in drawings.values():
        vl_convert.vegalite_to_vega(drawing.spec)
    assert "WARN" not in capfd.readouterr().err


def test_notes_are_broken_into_lines():
    assert wrapped("one two three", columns=8) == ["one two", "three"]
