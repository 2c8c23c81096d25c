"""How figures are written."""

import pytest

from bench.cells import merge
from bench.figures import FIGURES, headline, number, quantity


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0.00"),
        (0.0449, "0.04"),
        (2, "2"),
        (9.87, "9.87"),
        (19.26, "19.3"),
        (118, "118"),
        (2893.6, "2,894"),
    ],
)
def test_number_has_three_digits_and_missing_is_a_dash(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(2.5, "ms", "2.50 ms"), (380.2, "/s", "380/s"), (None, "ms", "–"), (2, "", "2")],
)
def test_quantity_carries_its_unit(value, unit, text):
    assert quantity(value, unit) == text


def test_percentile_of_nothing_is_missing():
    assert merge([]) is None


def test_headline_of_each_mode_names_figures_that_can_be_compared():
    for mode in ("open", "closed", "autothrottle"):
        assert headline(mode)
        assert all(figure.has_ratio and figure.heading for figure in headline(mode))


def test_figures_stand_under_their_own_name():
    assert all(name == figure.name for name, figure in FIGURES.items())
