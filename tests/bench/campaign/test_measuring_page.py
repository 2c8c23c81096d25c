"""The page on the method says what the code does."""

import re
from collections.abc import Callable

import pytest

from bench import gates
from bench.provenance import PROJECT
from bench.records import Load, Machine, Usage
from bench.workloads import WORKLOADS

PAGE = (PROJECT / "docs" / "measuring.md").read_text()


def rows() -> dict[str, str]:
    """Return the tables' rows: first column -> the others."""
    found = re.findall(r"^\| `?([^|`]+?)`? \| (.+) \|$", PAGE, re.MULTILINE)
    return dict(found)


@pytest.mark.parametrize("test", WORKLOADS)
def test_page_describes_every_test(test: str) -> None:
    assert WORKLOADS[test].path in rows()[test]


def test_page_describes_every_gate(
    make_load: Callable[..., Load],
    make_usage: Callable[..., Usage],
    make_machine: Callable[..., Machine],
) -> None:
    names: set[str] = set()
    for mode in ("open", "closed", "autothrottle"):
        found = gates.check(
            make_load(mode=mode),
            make_usage(),
            make_usage(),
            make_machine(),
            server_cores=1,
            cores=2,
        )
        names |= {gate.name for gate in found if not gate.advisory}
    assert names <= rows().keys()


@pytest.mark.parametrize(
    ("gate", "limit"),
    [
        ("failures", f"{gates.FAILED_SHARE:.1%}"),
        ("enough replies", f"{gates.SUCCESSES_FOR_P99:,} for percentiles"),
        ("enough replies", f"{gates.SUCCESSES_FOR_RATE} for a rate"),
        ("Little's law", f"{gates.LITTLE_SHARE:.0%}"),
        ("schedule lag", f"{gates.LAG_SHARE:.0%}"),
        ("schedule lag", f"{gates.LAG_P99_MS} ms"),
        ("generator CPU", f"{gates.GENERATOR_CORES:.0%}"),
        ("foreign CPU", f"{gates.FOREIGN_CORES:.0%}"),
        ("steal", f"{gates.STEAL_SHARE:.0%}"),
    ],
)
def test_page_states_each_limit(gate: str, limit: str) -> None:
    assert limit in rows()[gate].replace(" %", "%")
