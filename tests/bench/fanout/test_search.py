"""The search finds the largest load that holds."""

from dataclasses import replace

import pytest

from bench.cli.fanout import SEARCHED
from bench.fanout.page import readme
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


def test_page_says_how_many_were_served_and_what_was_the_matter_with_more(campaign, outcome):
    tried = [
        outcome(cell=replace(SEARCHED, users=users), p95_ms=p95_ms, **more)
        for users, p95_ms, more in (
            (1_000, 90.0, {}),
            (2_000, 250.0, {}),
            (3_000, 251.0, {}),
            (4_000, 700.0, {"counts": {"received": 8, "lost": 2}}),
        )
    ]
    page = readme(campaign(*tried), [])
    assert "**2,000 users** were served, each with 1,000 of 50,000 topics" in page
    assert "3,000 were not: p95 251 ms, 0 lost" in page
    page = readme(campaign(*tried[2:]), [])
    assert "None of those tried was served" in page
