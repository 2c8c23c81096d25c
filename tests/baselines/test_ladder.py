"""The rungs differ in what they say they differ in: the trips to a thread."""

import pytest

from bench.baselines.hops import counted
from bench.baselines.rows import rows

RUNGS = {row.name: row for row in rows() if row.table == "ladder"}


@pytest.mark.parametrize(
    ("rung", "hops", "threads"),
    [
        ("none-sync", 3, 2),  # the view, and the signals at either end
        ("inline-sync", 3, 2),  # no more with seven middlewares that make no trips
        ("stock-sync", 16, 2),
        ("shared_thread", 16, 0),
        ("one_hop", 1, 0),
        ("in_loop", 0, 0),
    ],
)
def test_rung_makes_as_many_trips_to_a_thread_as_the_docs_say(rung, hops, threads):
    assert counted(RUNGS[rung]) == {"hops": hops, "threads": threads}
