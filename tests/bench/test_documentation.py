"""What the documentation quotes is what the published campaigns say."""

import re

import pytest

from bench.cells import SERIES_BUCKET_S
from bench.environment import ROOT
from bench.figures import number
from bench.findings import bounds, times
from bench.results import read_results

THEN_AND_NOW = ROOT / "results" / "2026-11-21-then-and-now"
HEADLINE = ROOT / "results" / "2026-11-21"
A_RATIO = re.compile(r"([\d.]+)\s+times[^().]*\(([\d.]+)\s+to\s+([\d.]+)\)")


@pytest.fixture(scope="module")
def then_and_now():
    return read_results(THEN_AND_NOW).summary


@pytest.fixture(scope="module")
def conclusions():
    page = (ROOT / "docs" / "2016-stack.md").read_text()
    return page.partition("## What to conclude")[2].partition("\n## ")[0]


def test_every_ratio_of_then_and_now_stands_in_its_report(conclusions):
    report = (THEN_AND_NOW / "README.md").read_text()
    quoted = A_RATIO.findall(conclusions)
    assert len(quoted) >= 9
    missing = [
        one for one in quoted if "{} times (95 % interval {} to {})".format(*one) not in report
    ]
    assert missing == []


def test_every_rate_of_then_and_now_is_that_of_its_cell(conclusions, then_and_now):
    ipc = then_and_now.cell("daphne-ipc", "minute").series
    lost = then_and_now.cell("channels017-daphne-ipc", "minute").series
    redis = then_and_now.cell("channels017-daphne-redis", "throughput").median("rps")
    low, high = (number(end(bucket.ok for bucket in ipc)) for end in (min, max))
    plain = re.sub(r"\s+", " ", conclusions)
    assert f"between {low} and {high} requests in each 5 s" in plain
    assert f"begin at {number(lost[0].ok)}, end at {number(lost[-1].ok)}" in plain
    assert f"{number(redis * SERIES_BUCKET_S)} requests in 5 s" in plain


@pytest.mark.parametrize("arm", ["daphne-redis", "daphne-ipc"])
def test_relay_is_quoted_from_the_headline_campaign(arm):
    ratio = read_results(HEADLINE).summary.ratio(arm, "relay", "rps_per_cpu_s")
    page = (ROOT / "docs" / "relay.md").read_text()
    assert f"| `{arm}`, relayed | {times(ratio.estimate)} ({bounds(ratio)}) |" in page
