"""Where ticks and labels go."""

from itertools import pairwise

import pytest

from bench.axes import log_ticks, padded, spread_apart


def test_log_ticks_are_one_two_five_within_the_range():
    assert log_ticks(0.9, 12) == [1, 2, 5, 10]


def test_log_ticks_of_many_decades_are_whole_decades():
    assert log_ticks(0.5, 20_000) == [1, 10, 100, 1000, 10_000]


def test_labels_with_room_stay_at_their_lines():
    ends = {"low": 1.0, "high": 9.0}
    assert spread_apart(ends, share=0.1, span=(0, 10)) == ends


def test_labels_that_collide_spread_around_their_middle():
    placed = spread_apart({"b": 5.1, "a": 4.9, "far": 9.0}, share=0.1, span=(0, 10))
    assert placed == {"a": pytest.approx(4.5), "b": pytest.approx(5.5), "far": 9.0}


def test_labels_on_a_log_axis_keep_a_share_of_its_decades():
    placed = spread_apart({"a": 10.0, "b": 10.0}, share=0.5, span=(1, 100), log=True)
    assert placed["b"] / placed["a"] == pytest.approx(10)


def test_labels_of_many_equal_lines_keep_their_distance():
    placed = sorted(spread_apart(dict.fromkeys("abcde", 3.0), share=0.05, span=(0, 10)).values())
    assert all(b - a >= 0.4999 for a, b in pairwise(placed))


def test_padding_leaves_room_at_either_end_even_of_a_point():
    low, high = padded([1, 100])
    assert low < 1 < 100 < high
    low, high = padded([5])
    assert low < 5 < high
