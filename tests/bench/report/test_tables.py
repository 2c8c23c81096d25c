"""The verdict in the terminal."""

from dataclasses import replace

import pytest
from rich.console import Console

from bench.tables import verdict_table


def printed(summary, width=80):
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(verdict_table(summary))
    return captured.get()


@pytest.fixture(scope="module")
def lines(full):
    return printed(full.summary).splitlines()


def test_table_fits_eighty_columns_with_nothing_cut(lines):
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)


def test_table_has_figure_ratio_and_rounds_of_every_arm(lines, full):
    ratio = full.summary.ratio("daphne-redis", "latency", "p50_ms")
    (line,) = [one for one in lines if one.startswith("daphne-redis") and "10/10" in one][:1]
    median = full.summary.cell("daphne-redis", "latency").median("p50_ms")
    assert f"{median:.2f}" in line
    assert f"{ratio.estimate:.2f} ({ratio.interval.low:.2f}–{ratio.interval.high:.2f})" in line


def test_table_marks_what_cannot_be_told_apart(lines):
    (line,) = [one for one in lines if one.startswith("gunicorn (again)")][:1]
    assert line.count("≈") == 1


def test_table_names_what_was_lost(lines):
    assert any("1 discarded" in line for line in lines)
    assert any("1 failed" in line for line in lines)


def test_table_of_a_quick_campaign_calls_itself_quick(quick):
    text = printed(quick.summary)
    assert "A quick campaign of 3 rounds" in text
    assert "ratio (range)" in text
    assert "interval)" not in text


def test_table_is_loud_where_the_control_differs_from_itself(make):
    campaign = make.campaign(rounds=10, tests=("latency",))
    samples = make.samples(campaign, duration_s=2, drift={"gunicorn (again)": 1.3})
    text = printed(make.canned(campaign, tuple(samples)).summary)
    assert "The control differs from itself" in text


def test_table_of_failures_shows_dashes(make):
    campaign = make.campaign("quick", rounds=1, tests=("latency",))
    samples = make.samples(campaign, duration_s=2)
    broken = [make.failed(s) if s.arm == "daphne-ipc" else s for s in samples]
    text = printed(make.canned(campaign, tuple(broken)).summary)
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("daphne-ipc"))
    assert [line.split() for line in lines[first : first + 2]] == [
        ["daphne-ipc", "p50", "ms", "–", "–", "0/1"],
        ["p99", "ms", "–", "–", "1", "failed"],
    ]


def test_table_of_the_longest_names_fits_too(make):
    campaign = make.campaign("quick", rounds=1, tests=("throughput",))
    longest = "gunicorn-asgi-redis-x4"
    arms = {**campaign.arms, longest: campaign.arms["daphne-redis"]}
    samples = [
        replace(one, arm=longest, variant=longest) if one.arm == "daphne-redis" else one
        for one in make.samples(campaign, duration_s=2)
    ]
    spoilt = tuple(make.invalid(one) if one.arm == longest else one for one in samples)
    text = printed(make.canned(replace(campaign, arms=arms), (*samples, *spoilt)).summary)
    assert longest in text
    assert "…" not in text
