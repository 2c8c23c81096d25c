"""One load on several workers: the parts are the whole, before the test and after it."""

import pytest
from hdrh.histogram import HdrHistogram

from locustfiles.driver.arrivals import arrivals, constant
from locustfiles.driver.division import Share, divided, merged
from locustfiles.driver.options import BadOption
from locustfiles.driver.record import Recorder, histogram, payload


def test_workers_together_send_the_whole_schedule():
    parts = [at for worker in range(3) for at in arrivals("constant", 300, 2, worker, 3)]
    assert sorted(parts) == list(constant(300, 2))


def test_poisson_workers_add_up_to_the_rate():
    parts = [at for worker in range(4) for at in arrivals("poisson", 2000, 5, worker, 4)]
    assert len(parts) == pytest.approx(10_000, rel=0.05)


@pytest.mark.parametrize(("whole", "workers"), [(10, 3), (3, 3), (7, 2), (1, 1)])
def test_shares_of_a_number_are_the_number(whole, workers):
    shares = [Share(index, workers).of(whole) for index in range(workers)]
    assert sum(shares) == whole
    assert max(shares) - min(shares) <= 1


def test_rate_and_limits_left_open_are_not_divided():
    values = {"rps": 300.0, "requests": 0, "clients": 5, "timeout": 10.0}
    assert divided(values, Share(1, 2)) == {**values, "clients": 2}


def test_fewer_clients_than_workers_are_refused():
    with pytest.raises(BadOption, match="--clients 1: fewer than the 2 workers"):
        divided({"clients": 1}, Share(0, 2))


def part(start_s: float, latencies_s: list[float], boot_id: str = "here", failed: int = 0):
    """Return the result of a worker that sent one request every 0.4 s."""
    recorder = Recorder(start_s)
    for number, latency_s in enumerate(latencies_s):
        intended = start_s + 0.4 * number
        recorder.sent(intended, intended)
        recorder.finished(intended, intended + latency_s, "reset" if number < failed else None)
    found = recorder.as_json()
    for bucket, latencies in zip(found["buckets"], recorder.seconds_us(), strict=True):
        bucket["ok_us"] = latencies
    return {
        **found,
        "rate_rps": 300.0,
        "concurrency": 2,
        "counters": {"good": 1},
        "connect_us": payload(histogram([100])),
        "warnings": ["same"],
        "boot_id": boot_id,
    }


def test_merged_result_is_that_of_one_process_that_saw_it_all():
    fast, slow = [0.010] * 6, [0.100] * 6
    whole = merged([part(100.0, fast, failed=1), part(100.1, slow)])
    assert (whole["sent"], whole["ok"], whole["error"]) == (12, 11, 1)
    assert whole["error_kinds"] == {"reset": 1}
    latencies = HdrHistogram.decode(whole["latency_us"])
    assert latencies.get_total_count() == 11
    assert latencies.get_value_at_percentile(40) == pytest.approx(10_000, rel=0.001)
    assert latencies.get_value_at_percentile(60) == pytest.approx(100_000, rel=0.001)
    assert [bucket["sent"] for bucket in whole["buckets"]] == [6, 4, 2]
    assert whole["buckets"][2]["p99_ms"] == pytest.approx(100, rel=0.001)
    assert whole["elapsed_s"] == pytest.approx(100.1 + 2.0 + 0.1 - 100.0)
    assert whole["inflight_mean"] == pytest.approx((6 * 0.01 + 6 * 0.1) / whole["elapsed_s"])
    assert (whole["concurrency"], whole["rate_rps"]) == (4, 300.0)
    assert (whole["counters"], whole["warnings"]) == ({"good": 2}, ["same"])
    assert HdrHistogram.decode(whole["connect_us"]).get_total_count() == 2


def test_clocks_of_two_machines_are_not_compared():
    whole = merged([part(100.0, [0.1]), part(9000.0, [0.2], boot_id="there")])
    assert whole["started_monotonic_s"] is None
    assert whole["elapsed_s"] == pytest.approx(0.2)
