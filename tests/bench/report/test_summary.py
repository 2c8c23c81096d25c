"""What a summary takes from canned samples, and what it refuses to make up."""

from dataclasses import replace
from statistics import median

import pytest
from hdrh.histogram import HdrHistogram

from bench.records import Usage
from bench.summary import summarize

pytestmark = pytest.mark.filterwarnings("error")

DRIFT = {"gunicorn (again)": 1.3}


@pytest.fixture(scope="module")
def summary(full):
    return full.summary


def test_figure_of_a_cell_is_the_median_of_its_rounds(full, summary):
    samples = [s for s in full.samples if (s.arm, s.test) == ("daphne-ipc", "throughput")]
    rates = [s.load.ok / s.load.elapsed_s for s in samples]
    spread = summary.cell("daphne-ipc", "throughput").spreads["rps"]
    assert spread.median == pytest.approx(median(rates))
    assert (spread.low, spread.high) == (min(rates), max(rates))
    assert spread.n == 10


def test_requests_per_cpu_second_counts_user_and_system_time(make):
    campaign = make.campaign(rounds=1, tests=("throughput",))
    sample = make.pick(make.samples(campaign, duration_s=2), "gunicorn", "throughput")
    used = replace(sample, server=replace(sample.server, cpu_user_s=1.5, cpu_system_s=0.5))
    cell = summarize(campaign, [used]).cell("gunicorn", "throughput")
    assert cell.median("rps_per_cpu_s") == used.load.ok / 2
    assert cell.median("cpu_user_us") == pytest.approx(1.5e6 / used.load.ok)
    assert cell.median("cpu_system_us") == pytest.approx(0.5e6 / used.load.ok)


def test_percentiles_come_from_the_histogram_in_milliseconds(full, summary):
    sample = next(s for s in full.samples if (s.arm, s.test) == ("gunicorn", "latency"))
    recorded = HdrHistogram.decode(sample.load.latency_us.encode())
    rounds = summary.cell("gunicorn", "latency").spreads["p99_ms"].rounds
    assert rounds[sample.round] == recorded.get_value_at_percentile(99) / 1000


def test_discarded_sample_enters_no_figure_but_is_published(summary):
    cell = summary.cell("daphne-redis", "relay")
    assert (cell.valid, cell.discarded, cell.failed) == (9, 1, 0)
    assert 2 not in cell.spreads["rps"].rounds
    (discard,) = [one for one in summary.discards if one.test == "relay"]
    assert (discard.arm, discard.round, discard.attempt) == ("daphne-redis", 2, 1)
    assert discard.reasons == {"foreign CPU": "other processes used 12 % of a core"}
    assert summary.discards_by_gate == {"foreign CPU": 2}


def test_round_that_was_repeated_counts_once(summary):
    cell = summary.cell("daphne-redis", "latency")
    assert (cell.valid, cell.discarded) == (10, 1)


def test_round_with_two_valid_attempts_counts_the_last(make):
    campaign = make.campaign(rounds=1, tests=("throughput",))
    sample = make.pick(make.samples(campaign, duration_s=2), "gunicorn", "throughput")
    later = replace(sample, attempt=2, load=replace(sample.load, ok=7, elapsed_s=1.0))
    cell = summarize(campaign, [later, sample]).cell("gunicorn", "throughput")
    assert cell.valid == 1
    assert cell.median("rps") == 7


def test_failed_sample_keeps_its_reason_and_its_log(make, summary):
    (failure,) = summary.failures
    assert (failure.arm, failure.test, failure.round) == ("daphne-ipc", "relay", 3)
    assert failure.reason == "daphne exited with 1 before it was ready"
    assert failure.log_tail == make.hostile
    assert summary.cell("daphne-ipc", "relay").failed == 1


def test_cell_that_never_succeeded_has_no_figures(make):
    campaign = make.campaign("quick", rounds=2, tests=("latency",))
    broken = [make.failed(s) for s in make.samples(campaign, duration_s=2)]
    summary = summarize(campaign, broken)
    cell = summary.cell("daphne-ipc", "latency")
    assert (cell.valid, cell.failed) == (0, 2)
    assert cell.spreads == {}
    assert cell.counts is None
    assert (cell.curve, cell.series, cell.mode) == ((), (), None)
    assert cell.median("p99_ms") is None
    assert summary.ratios == ()


def test_cell_that_was_never_run_is_missing(summary):
    assert summary.cell("gunicorn", "relay") is None


def test_campaign_without_samples_has_no_cells(make):
    summary = summarize(make.campaign(), [])
    assert (summary.cells, summary.ratios, summary.discards) == ((), (), ())


def test_figure_that_was_not_measured_is_missing_and_not_zero(make):
    campaign = make.campaign("quick", rounds=1, tests=("throughput",))
    sample = make.pick(make.samples(campaign, duration_s=2), "gunicorn", "throughput")
    unseen = replace(sample, server=Usage(0.0, 0.0, 0.0, None, None, 1))
    cell = summarize(campaign, [unseen]).cell("gunicorn", "throughput")
    assert cell.median("pss_mb") is None
    assert cell.median("rps_per_cpu_s") is None
    assert cell.median("lag_p99_ms") is None
    unwatched = summarize(campaign, [replace(sample, server=None)]).cell("gunicorn", "throughput")
    assert unwatched.median("cpu_user_us") is None
    assert unwatched.median("processes") is None
    assert unwatched.median("rps") is not None


def test_errors_timeouts_and_dropped_are_summed_over_valid_rounds(make):
    campaign = make.campaign(rounds=3, tests=("latency",))
    samples = [s for s in make.samples(campaign, duration_s=2) if s.arm == "gunicorn"]
    spoilt = [replace(s, load=replace(s.load, error=2, timeout=1, dropped=4)) for s in samples]
    counts = summarize(campaign, [*spoilt[:2], make.invalid(spoilt[2])]).cells[0].counts
    assert (counts.error, counts.timeout, counts.dropped, counts.failed) == (4, 2, 8, 14)
    assert counts.ok == sum(s.load.ok for s in spoilt[:2])


def test_series_has_only_whole_buckets_of_five_seconds(make):
    campaign = make.campaign(rounds=1, tests=("throughput",))
    sample = make.pick(make.samples(campaign, duration_s=12), "gunicorn", "throughput")
    series = summarize(campaign, [sample]).cell("gunicorn", "throughput").series
    assert [one.end_s for one in series] == [5, 10]
    assert series[0].ok == sum(bucket.ok for bucket in sample.load.buckets[:5])


def test_series_takes_the_median_of_the_rounds(full, summary):
    samples = [s for s in full.samples if (s.arm, s.test) == ("gunicorn", "throughput")]
    last = [sum(bucket.ok for bucket in s.load.buckets[15:20]) for s in samples]
    assert summary.cell("gunicorn", "throughput").series[-1].ok == median(last)


def test_curve_merges_all_rounds_and_ends_where_requests_run_out(summary):
    curve = summary.cell("gunicorn", "latency").curve
    # 10 rounds of 20 seconds of 400 latencies: five of them lie beyond 99.99 %.
    assert curve[-1].percentile == 99.99
    assert [p.latency_ms for p in curve] == sorted(p.latency_ms for p in curve)


def test_ratio_pairs_the_rounds_of_arm_and_control(summary):
    ratio = summary.ratio("daphne-redis", "throughput", "rps")
    above = summary.cell("daphne-redis", "throughput").spreads["rps"].rounds
    below = summary.cell("gunicorn", "throughput").spreads["rps"].rounds
    assert ratio.spread.rounds == {number: above[number] / below[number] for number in above}
    assert ratio.base == "gunicorn"
    assert ratio.interval.n == 10
    assert ratio.interval.low <= ratio.estimate <= ratio.interval.high
    assert ratio.differs


def test_ratio_of_relayed_requests_is_to_the_control_without_relay(summary):
    below = summary.cell("gunicorn", "throughput").spreads["rps"].rounds
    above = summary.cell("daphne-ipc", "relay").spreads["rps"].rounds
    ratio = summary.ratio("daphne-ipc", "relay", "rps")
    assert ratio.spread.rounds == {number: above[number] / below[number] for number in above}
    assert summary.stand_in("relay") is summary.cell("gunicorn", "throughput")
    assert summary.stand_in("latency") is None


def test_ratio_leaves_out_rounds_that_one_side_lost(summary):
    assert summary.ratio("daphne-redis", "relay", "rps").interval.n == 9


def test_ratio_of_a_quick_campaign_has_a_range_and_no_interval(quick):
    ratio = quick.summary.ratio("daphne-ipc", "latency", "p99_ms")
    assert ratio.interval is None
    assert ratio.differs is None
    assert ratio.estimate == ratio.spread.median
    assert ratio.spread.n == 3


def test_ratio_of_a_full_campaign_with_few_valid_rounds_has_no_interval(make):
    campaign = make.campaign(rounds=5, tests=("latency",))
    summary = summarize(campaign, make.samples(campaign, duration_s=2))
    assert summary.ratio("daphne-ipc", "latency", "p99_ms").interval is None


def test_contrast_stands_for_two_arms_that_differ_in_one_factor(summary):
    pairs = {(one.arm, one.base) for one in summary.contrasts}
    assert pairs == {("daphne-ipc", "daphne-redis")}
    (relayed,) = [
        one
        for one in summary.contrasts
        if (one.test, one.figure.name) == ("relay_latency", "p99_ms")
    ]
    assert relayed.interval.high < 1


def test_twin_ratios_are_the_headline_figures_of_every_test_it_took(summary):
    assert [(one.test, one.figure.name) for one in summary.twin_ratios] == [
        ("latency", "p50_ms"),
        ("latency", "p99_ms"),
        ("throughput", "rps"),
        ("throughput", "rps_per_cpu_s"),
        ("capacity", "held_rps"),
    ]


def test_alarms_of_honest_campaigns_are_as_rare_as_the_intervals_promise(make):
    alarms, ratios = 0, 0
    for seed in range(12):
        campaign = make.campaign(rounds=6, tests=("throughput",))
        samples = make.samples(campaign, seed=seed, duration_s=2)
        summary = summarize(campaign, [s for s in samples if s.variant == "gunicorn"])
        alarms += len(summary.alarms)
        ratios += len(summary.twin_ratios)
    assert ratios == 24
    # 3 % each at six rounds: four of 24 would be one in 300.
    assert alarms <= 3


def test_advisory_gate_leaves_a_sample_valid_and_is_remarked(make):
    campaign = make.campaign(rounds=2, tests=("throughput",))
    samples = [s for s in make.samples(campaign, duration_s=2) if s.arm == "gunicorn"]
    advice = replace(samples[0].gates[0], name="capacity", ok=False, advisory=True)
    advised = replace(samples[0], gates=(advice,))
    cell = summarize(campaign, [advised, samples[1]]).cells[0]
    assert (cell.valid, cell.discarded) == (2, 0)
    assert cell.remarks == {"capacity": 1}


def test_ratio_is_resolved_by_the_interval_of_the_twin_for_its_figure(make):
    campaign = make.campaign(rounds=10, tests=("latency",))
    summary = summarize(campaign, make.samples(campaign, duration_s=2, drift=DRIFT))
    pair = summary.ratio("gunicorn (again)", "latency", "p50_ms")
    other = summary.ratio("daphne-ipc", "latency", "p50_ms")
    assert (pair.resolution, other.resolution) == (1.0, pair.interval.high)
    assert pair.interval.high > 1.3
    assert replace(other, interval=replace(other.interval, low=1.2, high=1.5)).differs is False
    assert replace(other, interval=replace(other.interval, low=1.8, high=1.9)).differs is True
    assert replace(other, interval=replace(other.interval, low=0.3, high=0.5)).differs is True


def test_test_is_resolved_by_its_own_pair_or_that_of_its_stand_in_or_else_by_the_coarsest(make):
    campaign = make.campaign(rounds=2, tests=("latency",))
    found = summarize(campaign, make.samples(campaign, duration_s=2))
    known = {("latency", "rps_per_cpu_s"): 1.9, ("throughput", "rps_per_cpu_s"): 1.1}
    summary = replace(found, reach=known)
    assert summary.resolution("throughput", "rps_per_cpu_s") == 1.1
    assert summary.resolution("relay", "rps_per_cpu_s") == 1.1
    assert summary.resolution("relay_latency", "rps_per_cpu_s") == 1.9
    assert summary.resolution("minute", "rps_per_cpu_s") == 1.9
    assert summary.resolution("latency", "p50_ms") == 1.0


def test_twin_that_differs_from_the_control_raises_the_alarm(make):
    campaign = make.campaign(rounds=10, tests=("latency",))
    samples = make.samples(campaign, duration_s=2, drift=DRIFT)
    assert {one.figure.name for one in summarize(campaign, samples).alarms} == {"p50_ms", "p99_ms"}


def test_strip_shows_every_attempt_and_which_of_them_counted(summary):
    strip = summary.cell("daphne-redis", "latency").strip
    assert len(strip) == 11 * 20
    assert {(one.round, one.attempt) for one in strip if not one.valid} == {(1, 1)}


def test_test_that_this_version_does_not_know_is_summarized_too(make):
    campaign = replace(make.campaign(rounds=1), tests=("tomorrow",))
    sample = make.samples(make.campaign(rounds=1, tests=("latency",)), duration_s=2)[0]
    summary = summarize(campaign, [replace(sample, test="tomorrow")])
    assert summary.cell("gunicorn", "tomorrow").valid == 1
    assert summary.stand_in("tomorrow") is None
