import pytest

from bench.errors import BadInput
from bench.variants import VARIANTS
from bench.variants import resolve as resolve_variant
from bench.workloads import FULL, QUICK, WORKLOADS, resolve


def test_headline_tests_are_those_of_2016_and_their_relays() -> None:
    latency, throughput = resolve("latency"), resolve("throughput")
    assert (latency.path, latency.mode, latency.rate_rps, latency.connection) == (
        "/",
        "open",
        300.0,
        "close",
    )
    assert (throughput.mode, throughput.concurrency, throughput.connection) == (
        "closed",
        10,
        "close",
    )
    assert set(QUICK) <= set(FULL) <= set(WORKLOADS)


@pytest.mark.parametrize(
    ("relay", "direct"), [("relay_latency", "latency"), ("relay", "throughput")]
)
def test_relay_is_the_same_load_as_the_control_test_its_ratio_is_taken_to(
    relay: str, direct: str
) -> None:
    ours, theirs = resolve(relay), resolve(direct)
    assert ours.control_test == direct
    assert (ours.mode, ours.rate_rps, ours.concurrency, ours.connection) == (
        theirs.mode,
        theirs.rate_rps,
        theirs.concurrency,
        theirs.connection,
    )


@pytest.mark.parametrize(
    ("test", "variant", "runs"),
    [
        ("latency", "gunicorn", True),
        ("latency", "daphne-ipc", True),
        ("relay", "gunicorn", False),
        ("relay", "daphne-inmemory", False),  # its layer cannot reach a worker
        ("relay", "daphne-ipc", True),
        ("echo", "gunicorn", False),
        ("echo", "daphne-inmemory", True),
    ],
)
def test_workload_runs_where_its_path_is_served(test: str, variant: str, runs: bool) -> None:
    assert resolve(test).runs_on(resolve_variant(variant)) is runs


def test_every_test_runs_on_some_variant() -> None:
    for workload in WORKLOADS.values():
        assert any(workload.runs_on(variant) for variant in VARIANTS.values())


def test_unknown_test_names_the_nearest() -> None:
    with pytest.raises(BadInput, match="unknown test 'latencies': did you mean latency"):
        resolve("latencies")
