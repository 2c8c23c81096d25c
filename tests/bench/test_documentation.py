"""What the documentation quotes is what the published campaigns say."""

import re

import pytest

from bench.cells import SERIES_BUCKET_S
from bench.environment import ROOT
from bench.figures import number
from bench.findings import bounds, times
from bench.results import read_results

PROOF = ROOT / "results" / "2026-11-22-ipc-collapse"
THEN_AND_NOW = ROOT / "results" / "2026-11-21-then-and-now"
HEADLINE = ROOT / "results" / "2026-11-22"
RELAY = ROOT / "results" / "2026-11-22-relay"
HANDLERS = ROOT / "results" / "2026-11-22-handlers"
DRIVER = ROOT / "results" / "2026-11-22-driver"
BASELINES = ROOT / "results" / "2026-11-22-baselines"
BASELINES_BY_AB = ROOT / "results" / "2026-11-22-baselines-ab"
A_RATIO = re.compile(r"([\d.]+)\s+times[^().]*\(([\d.]+)\s+to\s+([\d.]+)\)")


def concluded(name):
    """Return what the page concludes: its section of that name."""
    page = (ROOT / "docs" / name).read_text()
    return page.partition("## What to conclude")[2].partition("\n## ")[0]


def quoted(ratio):
    return f"{times(ratio.estimate)} ({bounds(ratio)})"


@pytest.fixture(scope="module")
def then_and_now():
    return read_results(THEN_AND_NOW).summary


@pytest.fixture(scope="module")
def conclusions():
    return concluded("2016-stack.md")


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


@pytest.mark.parametrize(
    "variant",
    [
        "channels017-daphne-redis",
        "channels017-daphne-ipc",
        "channels1-daphne-redis",
        "channels1-daphne-ipc",
    ],
)
def test_every_minute_of_2016s_software_is_that_of_its_cell(variant, then_and_now):
    page = (ROOT / "docs" / "2016-stack.md").read_text()
    series = then_and_now.cell(variant, "minute").series
    assert f"| {', '.join(str(bucket.ok) for bucket in series)} |" in page


def test_proof_of_the_collapse_is_quoted_row_by_row():
    rows = [
        line
        for line in (PROOF / "README.md").read_text().splitlines()
        if re.match(r"\| [^|]*\| \d", line)
    ]
    assert len(rows) == 6
    page = (ROOT / "docs" / "2016-stack.md").read_text()
    assert [row for row in rows if row not in page] == []


@pytest.mark.parametrize(
    ("campaign", "arm"),
    [
        (HEADLINE, "daphne-redis"),
        (HEADLINE, "daphne-ipc"),
        (RELAY, "uvicorn-redis"),
        (RELAY, "uvicorn-ipc"),
        (RELAY, "granian-ipc"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_relay_is_quoted_from_the_campaigns(campaign, arm):
    ratio = read_results(campaign).summary.ratio(arm, "relay", "rps_per_cpu_s")
    page = (ROOT / "docs" / "relay.md").read_text()
    assert f"| `{arm}`, relayed | {quoted(ratio)} |" in page


def test_one_hop_is_quoted_from_its_campaign():
    summary = read_results(HANDLERS).summary
    page = (ROOT / "docs" / "framework-baselines.md").read_text()
    for arm in ("daphne-ipc", "daphne-ipc-one_hop", "uvicorn-ipc", "uvicorn-ipc-one_hop"):
        ratio = summary.ratio(arm, "throughput", "rps_per_cpu_s")
        assert f"| `{arm}` | {quoted(ratio)} |" in page
        assert (ratio.interval.low < 1 < ratio.interval.high) == (arm == "uvicorn-ipc-one_hop")


def test_server_without_the_relay_is_quoted_from_the_same_campaign():
    ratio = read_results(RELAY).summary.ratio("uvicorn-ipc", "throughput", "rps_per_cpu_s")
    page = " ".join((ROOT / "docs" / "relay.md").read_text().split())
    assert f"it comes to {quoted(ratio)} in the second" in page


def test_other_generators_are_quoted_from_their_run():
    figures = [
        line.strip("| ").split(" | ")
        for line in (DRIVER / "README.md").read_text().splitlines()
        if re.match(r"\| (this driver|hey) \|", line)
    ]
    page = (ROOT / "docs" / "load-driver.md").read_text()
    assert [row[0] for row in figures] == ["this driver", "hey"]
    for _, p50, p99, *_ in figures:
        assert f" | {p50} | {p99} | " in page
    assert f" | {figures[0][3]} |\n" in page


def test_every_ratio_of_the_baselines_stands_in_their_report():
    quoted = A_RATIO.findall(concluded("framework-baselines.md"))
    assert len(quoted) >= 20
    report = (BASELINES / "README.md").read_text().replace("**", "").splitlines()
    missing = [
        (estimate, low, high)
        for estimate, low, high in quoted
        if not any(
            f"{estimate} times" in line and f"(95 % interval {low} to {high})" in line
            for line in report
        )
    ]
    assert missing == []


def shares_of_nginx_alone(folder):
    """Return what a campaign's tables say of each row: its share, and 2012's."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (folder / "README.md").read_text().splitlines()
        if line.startswith("| ")
    ]
    return {row[0]: (row[1].split(" ")[0], row[2]) for row in rows if len(row) == 9}


def test_shares_of_nginx_alone_are_those_of_both_campaigns():
    by_ab, by_wrk = map(shares_of_nginx_alone, (BASELINES_BY_AB, BASELINES))
    table = concluded("framework-baselines.md").partition("| share of nginx alone |")[2]
    quoted = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in table.splitlines()[2:]
        if line.startswith("| ")
    ]
    assert len(quoted) >= 10
    assert quoted == [
        (name, by_ab[name][1], by_ab[name][0], by_wrk[name][0]) for name, *_ in quoted
    ]
