"""Every gate holds on a flawless measurement, and fires on the flaw that it is there for."""

from collections.abc import Callable
from typing import Any

import pytest

from bench import gates
from bench.records import Gate, Load, Machine, Usage


@pytest.fixture
def check(
    make_load: Callable[..., Load],
    make_usage: Callable[..., Usage],
    make_machine: Callable[..., Machine],
) -> Callable[..., dict[str, Gate]]:
    def check(
        *,
        load: dict[str, Any] | None = None,
        server: dict[str, Any] | None = None,
        generator: dict[str, Any] | None = None,
        machine: dict[str, Any] | None = None,
        server_cores: int = 1,
    ) -> dict[str, Gate]:
        found = gates.check(
            make_load(**load or {}),
            make_usage(**server or {}),
            make_usage(**generator or {}),
            make_machine(**machine or {}),
            server_cores=server_cores,
            cores=2,
        )
        return {gate.name: gate for gate in found}

    return check


CLOSED = {"mode": "closed", "concurrency": 10, "rate_rps": None}


def test_gates_of_a_flawless_open_loop_all_hold(check: Callable[..., dict[str, Gate]]) -> None:
    found = check()
    assert set(found) == {
        "accounting",
        "wrong bodies",
        "enough replies",
        "Little's law",
        "failures",
        "schedule lag",
        "saturation",
        "generator CPU",
        "foreign CPU",
        "steal",
    }
    assert all(gate.ok and gate.reason == "" for gate in found.values())


def test_gates_of_a_closed_loop_ask_for_capacity_and_not_for_lag(
    check: Callable[..., dict[str, Gate]],
) -> None:
    found = check(load=CLOSED, server={"cpu_user_s": 9.0})
    assert "schedule lag" not in found
    assert found["capacity"].ok


@pytest.mark.parametrize(
    ("name", "flaw"),
    [
        ("accounting", {"load": {"scheduled": 3001}}),
        ("accounting", {"load": {"ok": 2999, "sent": 3000, "buckets": ()}}),
        ("accounting", {"load": {"buckets": ()}}),
        ("wrong bodies", {"load": {"error_kinds": {"wrong body": 1}}}),
        ("failures", {"load": CLOSED | {"ok": 2996, "error": 4, "error_kinds": {"status 503": 4}}}),
        ("failures", {"load": CLOSED | {"ok": 2996, "timeout": 4}}),
        ("failures", {"load": CLOSED | {"sent": 2996, "ok": 2996, "dropped": 4}}),
        ("enough replies", {"load": {"sent": 999, "ok": 999}}),
        ("enough replies", {"load": CLOSED | {"sent": 199, "ok": 199}}),
        ("Little's law", {"load": {"inflight_mean": 10.0}}),
        ("Little's law", {"load": {"inflight_mean": 0.0}}),
        ("generator CPU", {"generator": {"cpu_user_s": 8.1}}),
        ("foreign CPU", {"machine": {"foreign_cores": 0.04}}),
        ("steal", {"machine": {"steal_cores": 0.03}}),
        ("held rate", {"load": CLOSED | {"mode": "autothrottle", "held_rps": None}}),
    ],
)
def test_gate_fires(
    check: Callable[..., dict[str, Gate]], name: str, flaw: dict[str, dict[str, Any]]
) -> None:
    gate = check(**flaw)[name]
    assert not gate.ok
    assert not gate.advisory
    assert gate.reason


def test_failures_are_told_by_their_cause(check: Callable[..., dict[str, Gate]]) -> None:
    flaw = {"ok": 2990, "sent": 2997, "error": 5, "timeout": 2, "dropped": 3}
    gate = check(load=flaw | {"error_kinds": {"status 503": 5}})["failures"]
    assert gate.reason == (
        "10 of 3000 requests failed: 5 status 503, 2 without a reply, 3 never sent"
    )


def test_schedule_lag_may_be_a_tenth_of_the_latency(
    check: Callable[..., dict[str, Gate]], payload: Callable[[Any], str]
) -> None:
    late = payload([50] * 2900 + [900] * 100)
    slow = payload([12_000] * 3000)
    assert not check(load={"lag_us": late})["schedule lag"].ok
    assert check(load={"lag_us": late, "latency_us": slow})["schedule lag"].ok


def test_schedule_lag_of_nothing_timed_fires(
    check: Callable[..., dict[str, Gate]], payload: Callable[[Any], str]
) -> None:
    gate = check(load={"latency_us": payload([])})["schedule lag"]
    assert (gate.ok, gate.measured) == (False, None)


def test_littles_law_leaves_lag_out_of_the_flight(
    check: Callable[..., dict[str, Gate]], payload: Callable[[Any], str]
) -> None:
    late = {"lag_us": payload([1000] * 3000)}  # half of each 2 ms was spent before the send
    assert check(load=late | {"inflight_mean": 0.3})["Little's law"].ok
    assert not check(load=late | {"inflight_mean": 0.6})["Little's law"].ok


def test_littles_law_counts_failed_requests_as_in_flight(
    check: Callable[..., dict[str, Gate]], payload: Callable[[Any], str]
) -> None:
    hung = {"timeout": 2, "ok": 2998, "error_latency_us": payload([5_000_000] * 2)}
    assert check(load=hung | {"inflight_mean": 0.585 + 1.0})["Little's law"].ok


def test_littles_law_without_any_reply_fires(
    check: Callable[..., dict[str, Gate]], payload: Callable[[Any], str]
) -> None:
    assert not check(load={"latency_us": payload([])})["Little's law"].ok


@pytest.mark.parametrize(
    ("server_cores", "busiest", "ok"),
    [(1, 0.4, False), (1, 0.8, True), (4, 0.8, True), (4, 0.7, False)],
)
def test_capacity_needs_a_busy_server_or_one_busy_process(
    check: Callable[..., dict[str, Gate]], server_cores: int, busiest: float, ok: bool
) -> None:
    gate = check(
        load=CLOSED, server={"cpu_busiest_process_cores": busiest}, server_cores=server_cores
    )["capacity"]
    assert gate.ok is ok
    assert gate.advisory


@pytest.mark.parametrize(("busy_s", "ok"), [(9.4, True), (9.6, False)])
def test_latency_of_a_server_that_hardly_carries_the_rate_is_marked(
    check: Callable[..., dict[str, Gate]], busy_s: float, ok: bool
) -> None:
    gate = check(server={"cpu_user_s": busy_s, "cpu_system_s": 0.0})["saturation"]
    assert gate.ok is ok
    assert gate.advisory


def test_capacity_of_many_processes_is_their_sum(check: Callable[..., dict[str, Gate]]) -> None:
    four = {"cpu_user_s": 32.0, "cpu_busiest_process_cores": 0.7}
    assert check(load=CLOSED, server=four, server_cores=4)["capacity"].ok


@pytest.mark.parametrize(("load", "advisory"), [({}, True), (CLOSED, False)])
def test_failures_at_a_fixed_rate_are_a_finding_and_no_reason_to_try_again(
    check: Callable[..., dict[str, Gate]], load: dict[str, Any], advisory: bool
) -> None:
    gate = check(load={**load, "ok": 2900, "timeout": 100})["failures"]
    assert not gate.ok
    assert gate.advisory is advisory


def test_failures_are_no_flaw_of_a_search_for_the_limit(
    check: Callable[..., dict[str, Gate]],
) -> None:
    found = check(load={"mode": "autothrottle", "ok": 2000, "error": 1000, "held_rps": 250.0})
    assert "failures" not in found
    assert found["held rate"].ok
