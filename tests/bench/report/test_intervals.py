"""The intervals against published tables, against examples worked by hand, and by simulation."""

from itertools import combinations, product
from math import exp, log
from random import Random

import pytest

from bench.intervals import (
    _mann_whitney_counts,
    _rank,
    _signed_rank_counts,
    interval,
    ratio_interval,
    ratio_shift,
    shift,
)

# Two-sided 5 %: the largest statistic that is still significant, as printed in every table.
SIGNED_RANK_TABLE = {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 15: 25, 20: 52, 25: 89}
MANN_WHITNEY_TABLE = {(4, 4): 0, (5, 5): 2, (6, 6): 5, (8, 8): 13, (10, 10): 23, (5, 10): 8}


@pytest.mark.parametrize(("n", "critical"), SIGNED_RANK_TABLE.items())
def test_signed_rank_agrees_with_the_published_table(n, critical):
    assert _rank(_signed_rank_counts(n), 0.95)[0] == critical + 1


@pytest.mark.parametrize(("sizes", "critical"), MANN_WHITNEY_TABLE.items())
def test_mann_whitney_agrees_with_the_published_table(sizes, critical):
    assert _rank(_mann_whitney_counts(*sizes), 0.95)[0] == critical + 1


@pytest.mark.parametrize("n", [1, 4, 7])
def test_signed_rank_counts_equal_all_signs_tried_out(n):
    tried = [0] * (n * (n + 1) // 2 + 1)
    for signs in product((0, 1), repeat=n):
        tried[sum(rank * sign for rank, sign in enumerate(signs, start=1))] += 1
    assert _signed_rank_counts(n) == tuple(tried)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 5), (4, 3)])
def test_mann_whitney_counts_equal_all_arrangements_tried_out(m, n):
    tried = [0] * (m * n + 1)
    for places in combinations(range(m + n), m):
        tried[sum(place - i for i, place in enumerate(places))] += 1
    assert _mann_whitney_counts(m, n) == tuple(tried)


def test_interval_of_six_rounds_spans_the_extremes():
    # By hand: with six rounds only rank 1 fits, 1 - 2/64, so the bounds are the extreme values;
    # the median of the 21 Walsh averages of 1, 2, 4, 8, 16, 32 is the 11th, 8.5.
    found = interval([1, 2, 4, 8, 16, 32])
    assert (found.low, found.estimate, found.high) == (1, 8.5, 32)
    assert found.confidence == pytest.approx(1 - 2 / 64)
    assert found.n == 6


def test_interval_of_a_published_example():
    # Depression scores of nine patients before and after a tranquilizer (Hollander and Wolfe,
    # table 3.1): the shift is -0.46, and -0.786 to -0.010 at 96.1 %.
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    found = interval([b - a for a, b in zip(before, after, strict=True)], confidence=0.95)
    assert found.estimate == pytest.approx(-0.46, abs=0.001)
    assert (found.low, found.high) == (pytest.approx(-0.786), pytest.approx(-0.010))
    assert found.confidence == pytest.approx(0.961, abs=0.001)


def test_shift_of_a_published_example():
    # Permeability of the human chorioamnion at term and at 12 to 26 weeks (Hollander and Wolfe,
    # table 4.1): the shift is -0.305, and -0.76 to 0.15 at 96 %.
    term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    early = [1.15, 0.88, 0.90, 0.74, 1.21]
    found = shift(term, early, confidence=0.95)
    assert found.estimate == pytest.approx(-0.305)
    assert (found.low, found.high) == (pytest.approx(-0.76), pytest.approx(0.15))
    assert found.confidence == pytest.approx(0.96, abs=0.003)
    assert found.n == 5


@pytest.mark.parametrize("rounds", range(6))
def test_interval_of_too_few_rounds_is_missing(rounds):
    assert interval([0.1] * rounds) is None


def test_shift_of_too_few_rounds_is_missing():
    assert shift([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) is None
    assert ratio_shift([], [1.0, 2.0]) is None


def test_ratio_interval_is_the_exponential_of_the_logs():
    ratios = [1.1, 1.3, 0.9, 1.2, 1.15, 1.05, 1.4]
    logs, found = interval([log(r) for r in ratios]), ratio_interval(ratios)
    assert found.estimate == pytest.approx(exp(logs.estimate))
    assert (found.low, found.high) == (pytest.approx(exp(logs.low)), pytest.approx(exp(logs.high)))


def test_ratio_interval_of_swapped_arms_is_the_reciprocal():
    ratios = [1.1, 1.3, 0.9, 1.2, 1.15, 1.05, 1.4]
    there, back = ratio_interval(ratios), ratio_interval([1 / r for r in ratios])
    assert back.estimate == pytest.approx(1 / there.estimate)
    assert (back.low, back.high) == (pytest.approx(1 / there.high), pytest.approx(1 / there.low))


def test_ratio_shift_tells_a_factor_between_two_campaigns():
    found = ratio_shift([10, 11, 12, 13], [20, 22, 24, 26])
    assert found.estimate == pytest.approx(2, rel=0.01)
    assert found.contains(2)
    assert not found.contains(1)


def test_confidence_of_a_looser_interval_is_smaller_and_so_is_its_width():
    random = Random(1)
    values = [random.gauss(0, 1) for _ in range(12)]
    loose, tight = interval(values, confidence=0.8), interval(values, confidence=0.99)
    assert 0.8 <= loose.confidence < 0.95 < 0.99 <= tight.confidence
    assert tight.low < loose.low < loose.high < tight.high


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_confidence_outside_0_and_1_is_refused(confidence):
    with pytest.raises(ValueError, match="between 0 and 1"):
        interval([1, 2, 3, 4, 5, 6], confidence=confidence)


@pytest.mark.parametrize("rounds", [6, 10, 15])
def test_interval_covers_the_truth_as_often_as_it_promises(rounds):
    random = Random(20160906)
    found = [interval([random.gauss(0.3, 0.1) for _ in range(rounds)]) for _ in range(2000)]
    covered = sum(one.contains(0.3) for one in found) / len(found)
    # Three standard errors of 2,000 trials are about 1.5 %.
    assert covered == pytest.approx(found[0].confidence, abs=0.015)


def test_shift_covers_the_truth_as_often_as_it_promises():
    random = Random(20160906)
    found = [
        shift([random.gauss(0, 1) for _ in range(8)], [random.gauss(0.5, 1) for _ in range(10)])
        for _ in range(2000)
    ]
    covered = sum(one.contains(0.5) for one in found) / len(found)
    assert covered == pytest.approx(found[0].confidence, abs=0.015)
