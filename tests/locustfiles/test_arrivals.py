from itertools import pairwise
from statistics import fmean, stdev

import pytest

from locustfiles.driver.arrivals import constant, poisson


def test_constant_arrivals_fill_the_duration_exactly():
    times = list(constant(300, 20))
    assert len(times) == 6000
    assert times[:2] == [0, 1 / 300]
    assert times[-1] < 20


def test_constant_arrivals_do_not_drift():
    assert list(constant(3, 10_000))[29_997] == 9999


def test_poisson_arrivals_have_exponential_gaps():
    times = list(poisson(300, 100, seed=1))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(times) == pytest.approx(30_000, rel=0.03)
    assert stdev(gaps) == pytest.approx(fmean(gaps), rel=0.03)
    assert times[-1] < 100
