import pytest

from bench.layers.arrivals import Arrivals, latencies, percentile


def test_arrivals_count_duplicates_apart_from_messages() -> None:
    arrivals = Arrivals(sent=4)
    assert [arrivals.note(number) for number in (0, 2, 2, 1)] == [True, True, False, True]
    assert arrivals.counts() == {"sent": 4, "received": 3, "duplicates": 1}
    assert not arrivals.complete


def test_arrivals_in_any_order_are_all_counted() -> None:
    arrivals = Arrivals(sent=5)
    assert all(arrivals.note(number) for number in (3, 1, 0, 4, 2))
    assert not any(arrivals.note(number) for number in range(5))
    assert arrivals.counts() == {"sent": 5, "received": 5, "duplicates": 5}
    assert arrivals.complete


def test_arrivals_time_a_duplicate_once() -> None:
    arrivals = Arrivals(sent=1)
    arrivals.note(0, 0.001)
    arrivals.note(0, 9.0)
    assert arrivals.times_s == [0.001]
    assert arrivals.complete


@pytest.mark.parametrize(
    ("share", "wanted"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)], ids=str
)
def test_percentile_is_the_nearest_rank(share: float, wanted: float) -> None:
    assert percentile([float(value) for value in range(100, 0, -1)], share) == wanted


def test_latencies_of_nothing_are_missing() -> None:
    assert latencies([]) == {}


def test_latencies_are_in_microseconds() -> None:
    assert latencies([0.001, 0.002, 0.003]) == {
        "p50_us": pytest.approx(2000),
        "p99_us": pytest.approx(3000),
    }
