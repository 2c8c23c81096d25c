"""The climb, against simulated servers: ``workers`` in parallel, each request ``service_s``."""

import pytest

from locustfiles.driver.vegas import BASE_AGE_S, HIGHEST, Vegas, Window


def window(clients: int, workers: int, service_s: float, *, failed: int = 0) -> Window:
    """Return what a closed loop of ``clients`` sees of such a server in half a second."""
    rate_rps = min(clients, workers) / service_s
    return Window(clients, 0.5, round(rate_rps / 2), failed, clients / rate_rps)


def climb(workers: int, service_s: float, windows: int = 60) -> tuple[Vegas, Window]:
    state = Vegas()
    for _ in range(windows):
        last = window(state.clients, workers, service_s)
        state = state.after(last)
        if state.is_settled:
            break
    return state, last


@pytest.mark.parametrize("workers", [1, 2, 5, 16, 64])
def test_climb_ends_at_full_throughput_with_few_queueing(workers):
    state, last = climb(workers, 0.002)
    assert state.is_settled
    assert last.ok_rps == pytest.approx(workers / 0.002, rel=0.01)
    assert workers < state.clients <= workers + 5


def test_climb_stops_at_the_highest_number_of_clients():
    state = Vegas()
    for _ in range(100):
        state = state.after(window(state.clients, 10_000, 0.002))
        assert state.clients <= HIGHEST


def test_failure_halves_the_clients():
    state = Vegas(clients=8).after(window(8, 100, 0.002, failed=1))
    assert state.clients == 4
    assert not state.doubling


def test_window_without_a_reply_halves_the_clients():
    assert Vegas(clients=8).after(Window(8, 2.0, 0, 0, None)).clients == 4


def test_one_client_is_the_fewest():
    assert Vegas(clients=1).after(Window(1, 2.0, 0, 3, None)).clients == 1


def test_too_many_queueing_lose_a_client():
    state = Vegas(clients=10, base_s=0.002, doubling=False).after(window(10, 2, 0.002))
    assert state.clients == 9


def test_base_is_measured_anew_with_one_client_when_it_is_old():
    state = Vegas(clients=5, base_s=0.001, base_age_s=BASE_AGE_S, doubling=False)
    probing = state.after(window(5, 1, 0.002))
    assert probing.clients == 1
    back = probing.after(window(1, 1, 0.002))
    assert (back.clients, back.base_s) == (5, 0.002)
