"""The search for the bracket, against a simulated server of known capacity."""

import pytest

from locustfiles.driver.bisection import (
    PRECISION,
    Bracket,
    delay_slope,
    grew_steadily,
    holds,
)


def quarters(capacity_rps: float, rate_rps: float, seconds: float) -> list[list[float]]:
    """Return the latencies behind a single server, by the quarter of the step."""
    found: list[list[float]] = [[], [], [], []]
    free_at = 0.0
    for k in range(int(rate_rps * seconds)):
        at = k / rate_rps
        free_at = max(free_at, at) + 1 / capacity_rps
        found[int(at * 4 / seconds)].append(free_at - at)
    return found


def search(capacity_rps: float, estimate_rps: float) -> tuple[Bracket, int]:
    bracket, tries = Bracket(), 0
    while (rate_rps := bracket.next_rps(estimate_rps)) is not None:
        slope = delay_slope(quarters(capacity_rps, rate_rps, 4), 4)
        bracket = bracket.after(rate_rps, held=holds(0, slope))
        tries += 1
        assert tries < 50
    return bracket, tries


@pytest.mark.parametrize("off_by", [0.3, 0.7, 0.95, 1.0, 1.1, 2.0, 4.0])
@pytest.mark.parametrize("capacity_rps", [100, 500, 3000])
def test_bracket_closes_around_the_capacity(capacity_rps, off_by):
    bracket, tries = search(capacity_rps, capacity_rps * off_by)
    assert bracket.held_rps == pytest.approx(capacity_rps, rel=0.05)
    assert bracket.held_rps < bracket.failed_rps <= bracket.held_rps * PRECISION
    # Over by 1 % counts as held, as delivering 99 % does.
    assert bracket.held_rps <= capacity_rps * 1.011
    assert tries <= 20


def test_good_estimate_needs_few_tries():
    assert search(500, 500)[1] <= 7


@pytest.mark.parametrize("over", [0.0, 0.02, 0.1, 0.5])
def test_delay_slope_is_how_far_the_rate_is_over_the_capacity(over):
    slope = delay_slope(quarters(500, 500 * (1 + over), 4), 4)
    assert slope == pytest.approx(over, abs=0.002)


def test_slow_server_that_keeps_up_has_no_slope():
    assert delay_slope([[0.3] * 10] * 4, 4) == 0


def test_few_replies_say_nothing():
    assert delay_slope([[0.1] * 10, [0.1] * 10, [0.1] * 10, [0.1]], 4) is None


def test_overload_grows_from_each_quarter_to_the_next():
    assert grew_steadily(quarters(500, 550, 4), 4)


def test_stall_of_something_else_grows_once():
    assert not grew_steadily([[0.01] * 50, [0.01] * 50, [0.01] * 50, [0.4] * 50], 4)
    assert not grew_steadily([[0.01] * 50, [0.01] * 50, [0.3] * 50, [0.2] * 50], 4)
    assert not grew_steadily([[0.01] * 10, [0.01] * 10, [0.01] * 10, [0.01]], 4)


@pytest.mark.parametrize(
    ("failed", "slope", "held"),
    [(0, 0.0, True), (0, 0.01, True), (0, 0.011, False), (1, 0.0, False), (0, None, False)],
)
def test_rate_holds_without_failures_and_without_growing_delay(failed, slope, held):
    assert holds(failed, slope) is held
