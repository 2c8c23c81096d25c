"""The verdict table's texts, and the conclusions, which only an interval may draw."""

from dataclasses import replace

import pytest

from bench.conclusions import brackets, caution, conclusions, punctuality, standing, twin
from bench.figures import FIGURES
from bench.findings import sections, times, title, tone
from bench.gates import SATURATION
from bench.intervals import Interval
from bench.summary import summarize


@pytest.fixture(scope="module")
def summary(full):
    return full.summary


def rows_of(summary, test):
    (section,) = [one for one in sections(summary) if one.test == test]
    return {row.arm: row for row in section.rows}


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("latency", "GET / at 300/s"),
        ("relay", "GET /relay/, 10 clients"),
        ("capacity", "GET /, highest rate"),
        ("echo", "echo over /ws/echo/ at 300/s"),
        ("tomorrow", "tomorrow"),
    ],
)
def test_title_says_what_a_test_does(test, words):
    assert title(test) == words


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.0834, "0.083"), (0.998, "0.998"), (1.004, "1.004"), (3.24, "3.24"), (12.03, "12.0"),
     (1234, "1,234")],
)  # fmt: skip
def test_ratio_shows_on_which_side_of_one_it_lies(ratio, text):
    assert times(ratio) == text


@pytest.mark.parametrize(
    ("figure", "low", "high", "means"),
    [
        ("p99_ms", 1.2, 1.4, "worse"),
        ("p99_ms", 0.6, 0.8, "better"),
        ("rps", 1.2, 1.4, "better"),
        ("rps", 0.6, 0.8, "worse"),
        ("rps", 0.9, 1.1, "same"),
    ],
)
def test_tone_follows_the_interval_and_which_way_is_better(figure, low, high, means):
    assert tone(Interval((low + high) / 2, low, high, 0.95, 10), FIGURES[figure]) == means


@pytest.mark.parametrize(("resolution", "means"), [(1.1, "better"), (1.25, "same")])
def test_tone_tells_nothing_that_the_control_differs_by_from_itself(resolution, means):
    found = Interval(1.3, 1.2, 1.4, 0.95, 10)
    assert tone(found, FIGURES["rps"], resolution) == means


def test_tone_without_an_interval_is_unknown():
    assert tone(None, FIGURES["rps"]) == "unknown"


def test_sections_follow_the_campaign(summary):
    assert [section.test for section in sections(summary)] == list(summary.campaign.tests)


def test_row_of_the_control_has_no_ratio(summary):
    row = rows_of(summary, "latency")["gunicorn"]
    assert row.role == "control"
    assert [entry.ratio for entry in row.entries] == ["", ""]


def test_row_of_the_control_stands_in_where_it_has_no_relay(summary):
    row = rows_of(summary, "relay")["gunicorn"]
    assert row.role == "on /"
    assert row.entries == rows_of(summary, "throughput")["gunicorn"].entries


def test_row_says_what_was_lost(summary):
    rows = rows_of(summary, "relay")
    assert (rows["daphne-redis"].rounds, rows["daphne-redis"].lost) == ("9/10", "1 discarded")
    assert (rows["daphne-ipc"].rounds, rows["daphne-ipc"].lost) == ("9/10", "1 failed")


def test_row_that_measured_nothing_shows_gaps_and_no_zero(make):
    campaign = make.campaign("quick", rounds=2, tests=("latency",))
    samples = make.samples(campaign, duration_s=2)
    broken = [make.failed(s) if s.arm == "daphne-ipc" else s for s in samples]
    row = rows_of(summarize(campaign, broken), "latency")["daphne-ipc"]
    assert [(entry.value, entry.ratio) for entry in row.entries] == [("–", "–"), ("–", "–")]
    assert (row.rounds, row.lost) == ("0/2", "2 failed")


def test_remark_says_why_a_throughput_is_no_capacity(make):
    campaign = make.campaign(rounds=1, tests=("throughput",))
    samples = make.samples(campaign, duration_s=2)
    advice = replace(samples[0].gates[0], name="capacity", ok=False, advisory=True)
    (section,) = sections(summarize(campaign, [replace(samples[0], gates=(advice,))]))
    assert section.remarks == (
        "gunicorn, 1 of 1 valid rounds: the server did not use the processor it was given, so "
        "this is no capacity",
    )


def test_conclusion_tells_no_difference_where_the_interval_contains_one(summary):
    ratio = summary.ratio("daphne-ipc", "latency", "p99_ms")
    alike = replace(ratio, interval=Interval(1.01, 0.97, 1.05, 0.95, 10))
    found = conclusions(replace(summary, ratios=(alike,), contrasts=()))
    assert found == {
        "GET / at 300/s": [
            "daphne-ipc against gunicorn: no difference can be told in p99 (0.970 to 1.050)."
        ]
    }


def test_conclusion_tells_no_difference_within_what_the_control_differs_by(summary):
    ratio = summary.ratio("daphne-ipc", "latency", "p99_ms")
    small = replace(ratio, interval=Interval(1.12, 1.05, 1.2, 0.95, 10), resolution=1.08)
    found = conclusions(replace(summary, ratios=(small,), contrasts=()))
    assert found == {
        "GET / at 300/s": [
            "daphne-ipc against gunicorn: no difference beyond the control's own can be told in "
            "p99 (1.050 to 1.20)."
        ]
    }


def test_conclusion_gives_each_ratio_with_its_interval(summary):
    ratio = summary.ratio("daphne-redis", "relay", "rps")
    (sentence,) = [
        one
        for one in conclusions(summary)["GET /relay/, 10 clients"]
        if one.startswith("daphne-redis against gunicorn")
    ]
    interval = ratio.interval
    expected = f"{times(ratio.estimate)} times as high ({times(interval.low)} to "
    assert f"requests/s is {expected}{times(interval.high)})" in sentence


def test_conclusions_leave_the_twin_to_its_own_sentence(summary):
    assert not any("(again)" in one for found in conclusions(summary).values() for one in found)
    assert twin(summary).startswith("The control was measured twice in every round")


def test_conclusion_without_enough_rounds_says_so(make):
    campaign = make.campaign(rounds=5, tests=("throughput",))
    found = conclusions(summarize(campaign, make.samples(campaign, duration_s=2)))
    assert found == {
        "GET /, 10 clients": [
            "Too few rounds to tell a difference: daphne-redis against gunicorn (5), daphne-ipc "
            "against gunicorn (5).",
            "Too few rounds to tell a difference: daphne-ipc against daphne-redis (5).",
        ]
    }


def test_quick_campaign_concludes_nothing(quick):
    summary = quick.summary
    assert "nothing is concluded" in standing(summary)
    assert "how far the rounds range" in brackets(summary)
    text = str(conclusions(summary))
    assert "interval" not in text
    assert "no difference" not in text
    assert "was" in text
    assert "ranged" in twin(summary)


def test_caution_is_loud_where_the_control_differs_from_itself(make):
    campaign = make.campaign(rounds=10, tests=("latency",))
    samples = make.samples(campaign, duration_s=2, drift={"gunicorn (again)": 1.3})
    text = caution(summarize(campaign, samples))
    assert text.startswith("The control differs from itself: p50 under latency by 1.")
    assert "Of 2 such intervals, chance alone leaves 1 outside of one or more in 10% of" in text


def test_caution_names_an_interrupted_campaign(quick):
    cut = summarize(replace(quick.campaign, finished=None), quick.samples)
    assert caution(cut) == (
        "The campaign was interrupted: it holds fewer rounds than it set out to."
    )
    assert caution(quick.summary) is None


def test_caution_names_the_rounds_that_an_invalid_campaign_lacks(make):
    campaign = make.campaign(rounds=8, tests=("throughput",))
    samples = make.samples(campaign, duration_s=2)
    lost = make.pick(samples, "daphne-ipc", "throughput", 5)
    spoilt = [make.invalid(one) if one is lost else one for one in samples]
    assert caution(summarize(campaign, samples)) is None
    assert caution(summarize(campaign, spoilt)) == (
        "This campaign is invalid: daphne-ipc, throughput: no valid sample in round 5: foreign CPU "
        "(other processes used 12 % of a core)."
    )


def test_few_rounds_of_a_long_test_are_called_a_range_and_no_interval(make):
    campaign = replace(make.campaign(tests=("throughput", "relay")), fewer_rounds={"relay": 3})
    samples = [
        one for one in make.samples(campaign, duration_s=2) if one.test != "relay" or one.round <= 3
    ]
    summary = summarize(campaign, samples)
    assert {one.test: one.span for one in sections(summary)} == {
        "throughput": "95 % interval",
        "relay": "range",
    }
    assert rows_of(summary, "relay")["daphne-ipc"].rounds == "3/3"


def test_range_among_intervals_is_called_by_its_name(make):
    campaign = make.campaign(tests=("throughput",))
    samples = [
        make.invalid(one) if one.arm == "daphne-ipc" and one.round > 3 else one
        for one in make.samples(campaign, duration_s=2)
    ]
    rows = rows_of(summarize(campaign, samples), "throughput")
    assert rows["daphne-ipc"].entries[0].bounds.startswith("range of 3: ")
    assert not rows["daphne-redis"].entries[0].bounds.startswith("range")


def test_latency_of_a_server_that_hardly_carries_the_rate_says_so_beside_its_ratio(make):
    campaign = make.campaign(tests=("latency",))
    samples = make.samples(campaign, duration_s=2)
    full_up = replace(samples[0].gates[0], name=SATURATION, ok=False, advisory=True)
    spoilt = [
        replace(one, gates=(*one.gates, full_up))
        if one.arm == "daphne-ipc" and one.round < 8
        else one
        for one in samples
    ]
    said = conclusions(summarize(campaign, spoilt))["GET / at 300/s"]
    told = [one for one in said if "In 7 of 10 rounds daphne-ipc hardly carried the rate" in one]
    assert told == [one for one in said if "daphne-ipc" in one]


def test_punctuality_names_who_misses_the_aim(summary):
    cells = [
        replace(
            one,
            spreads=one.spreads | {"lag_p99_ms": replace(one.spreads["lag_p99_ms"], median=0.31)},
        )
        if (one.arm, one.test) == ("daphne-redis", "latency")
        else one
        for one in summary.cells
    ]
    kept, missed = punctuality(summary), punctuality(replace(summary, cells=tuple(cells)))
    assert all(one.endswith("The aim of 0.2 ms is kept by all.") for one in kept)
    assert missed[0].endswith("The aim of 0.2 ms is missed by daphne-redis.")
    assert "to 0.31 ms after" in missed[0]
    assert [one.split(":")[0] for one in kept] == ["GET / at 300/s", "GET /relay/ at 300/s"]


def test_rate_held_is_said_with_how_far_the_rounds_range(summary):
    (section,) = [one for one in sections(summary) if one.test == "capacity"]
    held = summary.cell("daphne-ipc", "capacity").spreads["held_rps"]
    assert f"daphne-ipc: the rate held was {held.low:.0f} to {held.high:.0f}/s" in section.remarks


def test_twin_of_a_campaign_without_one_is_silent(quick):
    assert twin(summarize(replace(quick.campaign, twin=None), quick.samples)) is None
