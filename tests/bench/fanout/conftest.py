"""Outcomes and campaigns as a measurement would leave them, where all went well."""

from dataclasses import replace

import pytest

from bench.fanout import floor, results
from bench.fanout.cells import Cell, variant
from bench.fanout.measure import COUNTS, checks
from bench.fanout.outcome import Outcome, described
from bench.records import Machine, Usage

CELL = Cell("compare", variant("hub"), users=6, subscriptions=2, topics=4, publishers=2)
USAGE = Usage(1.0, 1.0, 1.0, None, None, 1)
QUIET = Machine(4.0, 1.0, 0.0, 0.0)
PROVENANCE = {
    "commit": "abc",
    "machine": {"cpu": "a CPU", "usable_processors": 2, "kernel": "Linux"},
    "versions": {"python": "3.11"},
}


@pytest.fixture
def outcome():
    """Return a function that makes an outcome: ten records due and come, but for what is given."""

    def outcome(number=1, cell=CELL, rate=1000.0, *, counts=None, churned=None, hub=None, **more):
        nobody = {"received": 0, "lost": 0, "duplicated": 0, "reordered": 0, "visits": 0}
        known = {
            **described(cell, number),
            "counts": {**dict.fromkeys(COUNTS, 0), "received": 10, **(counts or {})},
            "churned": {**nobody, **(churned or {})},
            "hub": hub,
            "publisher": {"layer_dropped": 0},
            "published": 5,
            "wanted": 5,
            "expected": 10,
            "bytes_per_s": 1e6,
            "deliveries_per_s": 10.0,
            "deliveries_per_server_cpu_s": rate,
            "p50_ms": 1.0,
            "p95_ms": 2.0,
            "p99_ms": 3.0,
            "server": USAGE,
            "generator": USAGE,
            "machine": QUIET,
        }
        made = Outcome(**known | more)
        return made if "gates" in more else replace(made, gates=tuple(checks(made)))

    return outcome


@pytest.fixture
def campaign():
    def campaign(*outcomes, rounds=1):
        floors = (floor.Floor(1000, 20_560, 1000, 1.0, 1.0, 0.9),)
        asked = tuple(dict.fromkeys(one.question for one in outcomes))
        return results.Results("then", "later", rounds, asked, outcomes, floors, PROVENANCE)

    return campaign
