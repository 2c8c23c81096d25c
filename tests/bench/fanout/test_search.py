"""The search finds the largest load that holds."""

import pytest

from bench.fanout.search import largest


@pytest.mark.parametrize("limit", [100, 137, 250, 999, 1_000, 3_999])
def test_search_brackets_the_limit_to_an_eighth_of_the_last_doubling(limit):
    held, failed = largest(lambda load: load <= limit, 100, 8_000)
    assert held <= limit < failed
    assert failed - held <= held / 4 + 1


def test_search_says_none_where_nothing_holds():
    assert largest(lambda load: False, 100, 8_000) == (None, 100)


def test_search_ends_where_it_may_go_no_further():
    assert largest(lambda load: True, 100, 1_000) == (800, None)
