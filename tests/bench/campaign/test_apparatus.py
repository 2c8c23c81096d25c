"""What a campaign runs on: each test as the load driver understands it, and one for real."""

import os

import pytest

from bench import apparatus, provenance, supervise
from bench.apparatus import Servers, spec
from bench.campaign import Failed
from bench.errors import BadInput
from bench.provenance import Pinning
from bench.supervise import StartFailed
from bench.variants import CONTROL
from bench.workloads import WORKLOADS, Workload, resolve


@pytest.mark.parametrize("kind", ["quick", "full"])
@pytest.mark.parametrize("test", WORKLOADS.values(), ids=lambda one: one.test)
def test_every_test_is_one_that_the_load_driver_knows(test: Workload, kind: str) -> None:
    asked = spec(test, "http://127.0.0.1:8000", duration_s=test.seconds(kind), warmup_s=1.0)
    assert asked.url == f"http://127.0.0.1:8000{test.path}"
    assert (asked.mode, asked.rate_rps, asked.concurrency) == (
        test.mode,
        test.rate_rps,
        test.concurrency,
    )


@pytest.mark.parametrize(
    ("error", "log_tail"),
    [
        (StartFailed("it did not start", "its last words"), "its last words"),
        (BadInput("redis-server is missing: apt-get install redis-server"), None),
    ],
)
def test_variant_that_cannot_be_started_is_a_failure_and_not_the_end(
    monkeypatch: pytest.MonkeyPatch, error: Exception, log_tail: str | None
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(apparatus.supervise, "deployed", refuse)
    with (
        pytest.raises(Failed, match=str(error)) as caught,
        Servers(Pinning(None, None)).deployed(CONTROL),
    ):
        pass
    assert caught.value.log_tail == log_tail


@pytest.mark.server
@pytest.mark.timing
def test_measurement_of_a_real_server_adds_up() -> None:
    supervise.require(CONTROL, os.environ)
    pinned = provenance.pinning(os.sched_getaffinity(0), provenance.siblings())
    with Servers(pinned).deployed(CONTROL) as target:
        assert target.identity["server"] == "gunicorn"
        assert target.violations() == []
        measured = target.measure(resolve("latency"), duration_s=4, warmup_s=1)
    sure = {gate.name: gate.ok for gate in measured.gates}
    assert sure["accounting"]
    assert sure["wrong bodies"]
    assert measured.load.scheduled == 1200
    assert measured.server.processes_max == 2  # the arbiter and its worker
    assert measured.server.cpu_user_s > 0.05
    assert measured.server.pss_max_bytes
    assert measured.machine.wall_s == pytest.approx(4, abs=2)
    assert measured.command[:5] == ("python", "-P", "-m", "locust", "-f")
    assert not any(part.startswith("/") for part in measured.command if part != "/")
