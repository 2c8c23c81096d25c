"""2016 as published, its software here, and today's: in words and in the two charts."""

from dataclasses import replace

import pytest

from bench.charts import charts
from bench.report import readme
from bench.then import sentences
from bench.variants import HEADLINE, Variant, resolve
from bench.workloads import WORKLOADS

HUNG = 9
SLOWER = 0.5  # what the software of 2016 answers, of what the canned arms do


def with_2016(make, campaign, samples, stack="channels1"):
    """Return the same campaign with an arm of ``stack`` for each, answering half as often."""
    old = [replace(one, stack=stack) for one in HEADLINE]
    arms = campaign.arms | {variant.name: variant.factors() for variant in old}
    added = [
        replace(one, arm=f"{stack}-{one.arm}", variant=f"{stack}-{one.arm}", load=half(one.load))
        for one in samples
        if one.arm in {variant.name for variant in HEADLINE}
        and one.test in ("latency", "throughput")
    ]
    return replace(campaign, arms=arms), (*samples, *added)


def half(load):
    buckets = tuple(replace(one, ok=one.ok // 2) for one in load.buckets)
    return replace(load, ok=int(load.ok * SLOWER), buckets=buckets)


def minute(campaign, samples, arm):
    """Return the throughput of ``arm`` as a run that left nine clients without a reply."""
    campaign = replace(campaign, tests=(*campaign.tests, "minute"))
    added = [
        replace(one, test="minute", load=replace(one.load, timeout=HUNG))
        for one in samples
        if (one.arm, one.test) == (arm, "throughput")
    ]
    return campaign, (*samples, *added)


@pytest.fixture(scope="module")
def both(make, full):
    campaign, samples = with_2016(make, full.campaign, full.samples)
    return make.canned(*minute(campaign, samples, "channels1-daphne-ipc")).summary


@pytest.fixture(scope="module")
def drawn(both):
    return {one.name: one for one in charts(both)}


def rows(drawing, key):
    """Return the rows of data in ``drawing`` that have ``key``."""
    datasets = drawing.spec["datasets"].values()
    return [row for dataset in datasets for row in dataset if key in row]


def test_latency_chart_has_three_sets_of_bars(drawn):
    bars = rows(drawn["latency-2016"], "percentile")
    of_redis = {bar["series"] for bar in bars if bar["variant"] == "daphne-redis"}
    assert of_redis == {"2016", "2016's last releases, here", "today", "today, relayed"}
    colours = {bar["series"]: bar["colour"] for bar in bars if bar["variant"] == "daphne-redis"}
    assert len({colours[one] for one in ("2016", "2016's last releases, here", "today")}) == 3


def test_throughput_chart_names_the_hung_clients_beside_the_rate_of_the_others(drawn):
    drawn = drawn["throughput-2016"]
    lines = {row["line"] for row in rows(drawn, "end_s")}
    assert lines >= {"gunicorn, 2016", "channels1-gunicorn", "gunicorn", "daphne-redis, relayed"}
    assert "channels1-daphne-ipc, 9 of 10" in drawn.note


def test_campaign_without_the_software_of_2016_says_nothing_of_it(full):
    assert sentences(full.summary) == ()
    assert "brown" not in {one.name: one for one in charts(full.summary)}["latency-2016"].note


def test_fair_partner_of_2016_is_the_relayed_request_of_today(both):
    said = [one for one in sentences(both) if one.startswith("daphne-redis:")]
    fair = both.between(
        both.cell("daphne-redis", "relay"), both.cell("channels1-daphne-redis", "throughput"), "rps"
    )
    assert fair.interval is not None
    assert any("the fair partner" in one and f"{fair.estimate:.2f} times" in one for one in said)
    assert any("a plain request today (which no layer touches)" in one for one in said)


def test_what_the_control_differs_by_from_itself_is_no_difference_between_then_and_now(both):
    (said,) = [one for one in sentences(both) if "the same request today" in one]
    assert "no difference can be told" not in said
    (blurred,) = [
        one
        for one in sentences(replace(both, reach={("throughput", "rps"): 2.5}))
        if "the same request today" in one
    ]
    assert blurred.endswith(": no difference can be told.")


def test_gunicorn_is_set_beside_itself(both):
    (said,) = [one for one in sentences(both) if "the same request today" in one]
    assert "2.00 times" in said


def test_clients_that_hang_are_told_in_words(both):
    (said,) = [one for one in sentences(both) if "for a minute" in one]
    assert said.startswith("channels1-daphne-ipc")
    assert "9 of 10 clients had no reply" in said
    buckets = [one.ok for one in both.cell("channels1-daphne-ipc", "minute").series]
    assert f"{min(buckets):.0f} to {max(buckets):.0f} in any" in said.replace(",", "")


def test_nothing_is_said_twice_and_gunicorn_crosses_no_layer(make, full):
    campaign, samples = full.campaign, full.samples
    for stack in ("channels1", "channels017"):
        campaign, samples = with_2016(make, campaign, samples, stack)
    for arm in ("gunicorn", "channels1-gunicorn"):
        campaign, samples = minute(campaign, samples, arm)
    campaign = replace(campaign, tests=(*full.campaign.tests, "minute"))
    said = sentences(make.canned(campaign, samples).summary)
    assert len(set(said)) == len(said)
    told = [one for one in said if "for a minute" in one]
    assert {one.split(",")[0] for one in told} == {"channels1-gunicorn", "gunicorn"}
    assert not any("over the channel layer" in one for one in told)


def test_each_set_of_old_versions_has_a_column_of_its_own(make, full):
    campaign, samples = full.campaign, full.samples
    for stack in ("channels017", "channels1"):
        campaign, samples = with_2016(make, campaign, samples, stack)
    only = [one for one in samples if not one.arm.startswith("channels017-daphne-ipc")]
    text = readme(make.canned(campaign, only).summary, ())
    assert "| latency, 2016 | 2016's software, here | 2016's last releases, here |" in text
    (line,) = [
        one
        for one in text.splitlines()
        if one.startswith("| daphne 0.14.3 + asgi_ipc") and "| 50 %" in one
    ]
    cells = [one.strip() for one in line.split("|")]
    assert cells[4] == "–"
    assert cells[5].endswith("ms")


def test_table_of_the_minute_has_the_hung_clients_in_its_verdict(both):
    assert "hung" in {figure.name for figure in both.verdicts("minute")}
    assert "hung" not in {figure.name for figure in both.verdicts("throughput")}
    assert both.cell("channels1-daphne-ipc", "minute").median("hung") == HUNG


def test_page_says_it_with_the_caveat(both):
    text = readme(both, ())
    assert "because in 2016 every request crossed the layer" in " ".join(text.split())
    assert "the fair partner" in text


def test_rate_of_a_run_that_hung_counts_the_time_it_was_asked_for(both):
    cell = both.cell("channels1-daphne-ipc", "minute")
    assert cell.median("rps") == pytest.approx(
        both.cell("channels1-daphne-ipc", "throughput").median("rps"), rel=0.05
    )


@pytest.mark.parametrize(
    ("test", "variant", "path"),
    [
        ("minute", "daphne-ipc", "/relay/"),
        ("minute", "channels1-daphne-ipc", "/"),
        ("minute", "channels017-daphne-ipc", "/"),
        ("minute", "gunicorn", "/"),
        ("throughput", "daphne-ipc", "/"),
    ],
)
def test_minute_crosses_the_layer_wherever_there_is_one(test, variant, path):
    assert WORKLOADS[test].runs_on(resolve(variant))
    assert WORKLOADS[test].path_on(resolve(variant)) == path


@pytest.mark.parametrize("test", ["latency", "throughput"])
def test_deployment_that_loses_requests_is_only_asked_where_that_is_counted(test):
    lossy = Variant("daphne", "ipc", stack="channels017")
    assert not WORKLOADS[test].runs_on(lossy)
    assert WORKLOADS["minute"].runs_on(lossy)
