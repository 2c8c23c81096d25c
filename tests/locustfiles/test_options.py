"""The options, checked on the command line and once more when the web UI has filled them in."""

from argparse import Namespace

import pytest

from locustfiles.driver.options import HTTP, RPS, WARM_UP, WEBSOCKET, BadOption, checked


def given(**changed):
    return Namespace(**{option.name: option.default for option in HTTP} | changed)


def test_defaults_are_valid_and_of_their_type():
    values = checked(given(), HTTP)
    assert (values["rps"], values["clients"], values["arrivals"]) == (300.0, 10, "constant")


def test_value_typed_into_the_web_ui_is_converted():
    assert checked(given(rps="250"), (RPS,)) == {"rps": 250.0}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rps", "0"),
        ("rps", "-3"),
        ("rps", "many"),
        ("rps", "nan"),
        ("rps", "inf"),
        ("rps", "1e9"),
        ("timeout", "0"),
        ("warm_up", "-1"),
        ("clients", "0"),
        ("clients", "ten"),
        ("max_in_flight", "1.5"),
        ("arrivals", "bursty"),
    ],
)
def test_value_that_cannot_be_is_named_with_its_option(name, value):
    with pytest.raises(BadOption, match=f"--{name.replace('_', '-')}.*{value}"):
        checked(given(**{name: value}), HTTP)


def test_warm_up_may_be_none():
    assert checked(given(warm_up=0), (WARM_UP,)) == {"warm_up": 0.0}


def test_every_option_has_a_help_text():
    assert all(len(option.help) > 10 for option in (*HTTP, *WEBSOCKET))
