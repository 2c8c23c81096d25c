import pytest
from hdrh.histogram import HdrHistogram

from bench.records import Bucket
from locustfiles.driver.record import Recorder, histogram, payload, percentile_ms


def test_requests_end_up_in_the_second_they_were_meant_for():
    recorder = Recorder(100.0)
    recorder.sent(100.9, 101.2)
    recorder.finished(100.9, 102.4, None)
    recorder.sent(101.0, 101.2)
    recorder.finished(101.0, 101.5, "reset")
    first, second = (Bucket(**bucket) for bucket in recorder.as_json()["buckets"])
    assert (first.sent, first.ok, first.p50_ms) == (1, 1, 1500.0)
    assert (second.sent, second.error, second.p50_ms) == (1, 1, None)


def test_failures_stay_out_of_the_latencies():
    recorder = Recorder(0.0)
    for failure in (None, "timeout", "status 503"):
        recorder.sent(0.0, 0.0)
        recorder.finished(0.0, 0.25, failure)
    result = recorder.as_json()
    assert result["error_kinds"] == {"status 503": 1}
    assert (result["ok"], result["error"], result["timeout"]) == (1, 1, 1)
    assert HdrHistogram.decode(result["latency_us"]).get_total_count() == 1
    assert HdrHistogram.decode(result["error_latency_us"]).get_total_count() == 2


def test_warm_up_leaves_no_trace():
    recorder = Recorder(10.0)
    recorder.sent(9.99, 9.99)
    recorder.dropped(9.995)
    recorder.finished(9.99, 11.0, None)
    assert set(recorder.counts().values()) == {0}
    assert recorder.as_json()["elapsed_s"] == 0


def test_dropped_arrivals_are_scheduled_but_not_sent():
    recorder = Recorder(0.0)
    recorder.dropped(0.5)
    counts = recorder.counts()
    assert (counts["scheduled"], counts["sent"], counts["dropped"]) == (1, 0, 1)


def test_inflight_mean_is_weighted_by_time():
    recorder = Recorder(0.0)
    recorder.sent(0.0, 0.0)
    recorder.sent(1.0, 1.0)
    recorder.finished(0.0, 2.0, None)
    recorder.finished(1.0, 4.0, None)
    assert recorder.inflight_mean() == pytest.approx((1 + 2 + 1 + 1) / 4)


def test_lag_is_recorded_only_where_there_is_a_schedule():
    for scheduled, recorded in ((True, 1), (False, 0)):
        recorder = Recorder(0.0, scheduled=scheduled)
        recorder.sent(0.0, 0.0002)
        assert len(recorder.lag_us) == recorded


def test_histogram_survives_its_payload():
    decoded = HdrHistogram.decode(payload(histogram([100, 100, 412_000])))
    assert decoded.get_total_count() == 3
    assert decoded.get_value_at_percentile(50) == 100
    assert decoded.get_value_at_percentile(100) == pytest.approx(412_000, rel=0.001)


@pytest.mark.parametrize(
    ("values", "percentile", "expected"),
    [([], 99, None), ([7000], 50, 7.0), (range(1000, 101_000, 1000), 99, 99.0)],
)
def test_percentile_is_the_nearest_rank(values, percentile, expected):
    assert percentile_ms(values, percentile) == expected
