"""The HTTP tests of the load driver, each against a real server that misbehaves in one way."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from bench.records import Load, load_from
from locustfiles.driver.pacing import rest_s

LOCUST_FILE = Path(__file__).parent.parent.parent / "locustfiles" / "http.py"

RATE_RPS = 300
STALL_S = 0.5
SERVICE_S = 0.00187
SECONDS = 20


def on(server, *arguments):
    return ("--host", f"http://127.0.0.1:{server.port}", "--expect-body", "OK", *arguments)


def assert_accounted(load: Load) -> None:
    """Assert that every request is in exactly one place, in the totals and in the seconds."""
    assert load.sent == load.ok + load.error + load.timeout
    assert load.scheduled == load.sent + load.dropped
    assert sum(load.error_kinds.values()) == load.error
    for name in ("sent", "ok", "error", "timeout", "dropped"):
        assert sum(getattr(bucket, name) for bucket in load.buckets) == getattr(load, name)


@pytest.mark.timing
def test_latency_of_a_server_that_stalls_has_the_true_p99(serve, drive, percentile_ms):
    """A server that stands still for 0.5 s makes everybody wait who comes meanwhile.

    A request meant for x seconds into the stall is answered after what is left of it and after
    those before it in the queue: STALL_S - x + x * rate * service. The slowest 1 % of the
    requests came in the first 0.2 s, so the 99th percentile is that at x = 0.2 s: 414 ms. A closed
    loop, which stops to send while it waits, would find 1 or 2 ms.
    """
    server = serve(service_s=SERVICE_S, stall_at=1500, stall_s=STALL_S)
    ended = drive("http.py", "Latency", *on(server, "--rps", RATE_RPS), seconds=SECONDS)
    load = ended.load
    assert ended.code == 0
    assert load.scheduled == load.ok == RATE_RPS * SECONDS
    assert_accounted(load)
    slowest_s = 0.01 * SECONDS
    expected_ms = 1000 * (STALL_S - slowest_s * (1 - RATE_RPS * SERVICE_S) + SERVICE_S)
    assert expected_ms == pytest.approx(412, abs=4)
    # Others on the machine can only make it later.
    assert 0.95 * expected_ms < percentile_ms(load.latency_us, 99) < 1.15 * expected_ms
    assert percentile_ms(load.latency_us, 50) < 50


KINDS = {
    "wrong_body": "wrong body",
    "status": "status 503",
    "truncated": "closed early",
    "malformed": "malformed reply",
    "reset": "reset",
}
FRAMINGS = ("chunked", "unsized")


@pytest.fixture(scope="module")
def faulty(at_once):
    """Every fault in each fourth reply, and every framing in all, of 100."""
    behaviours = {fault: {"fault": fault, "every": 4} for fault in KINDS}
    behaviours |= {framing: {"fault": framing} for framing in FRAMINGS}
    arguments = ("http.py", "Latency", "--host", "http://127.0.0.1:{}", "--expect-body", "OK")
    return at_once(
        [
            (fault, ("server.py", json.dumps(behaviour)), (*arguments, "--rps", 100))
            for fault, behaviour in behaviours.items()
        ]
    )


@pytest.mark.parametrize(("fault", "kind"), KINDS.items())
def test_fault_of_a_reply_is_an_error_of_its_kind(faulty, fault, kind):
    ended = faulty[fault]
    load = ended.load
    assert ended.code == 1, "Locust's exit code for a run with failed requests"
    assert load.error_kinds == {kind: 25}
    assert (load.ok, load.timeout, load.dropped) == (75, 0, 0)
    assert_accounted(load)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_reply_without_a_length_is_read_whole(faulty, framing):
    ended = faulty[framing]
    assert (ended.code, ended.load.ok, ended.load.error) == (0, 100, 0)


def test_server_that_hangs_gives_timeouts_and_loses_none(serve, drive, percentile_ms):
    server = serve(fault="silent", every=2)
    ended = drive("http.py", "Latency", *on(server, "--rps", 100, "--timeout", 0.5))
    load = ended.load
    assert (load.timeout, load.ok, load.error) == (50, 50, 0)
    assert_accounted(load)
    # Failures keep to themselves: the successes are as fast as ever.
    assert percentile_ms(load.latency_us, 90) < 250
    assert percentile_ms(load.error_latency_us, 1) >= 499


def test_server_that_stops_listening_gives_refusals(serve, drive):
    ended = drive("http.py", "Latency", *on(serve(refuse_after=51), "--rps", 100))
    load = ended.load
    assert load.error_kinds["refused"] >= 40
    assert load.scheduled == 100
    assert_accounted(load)


def test_arrivals_beyond_the_cap_are_dropped_and_counted(serve, drive):
    server = serve(fault="silent")
    arguments = ("--rps", 100, "--max-in-flight", 20, "--timeout", 2)
    ended = drive("http.py", "Latency", *on(server, *arguments))
    load = ended.load
    assert (load.sent, load.timeout, load.dropped) == (20, 20, 80)
    assert "dropped" in ended.output, "Locust's own table names them"
    assert_accounted(load)
    assert server.stop()["requests"] == 21  # and the probe


def test_closed_loop_has_as_many_in_flight_as_clients(serve, drive):
    server = serve(service_s=0.002)
    ended = drive("http.py", "Throughput", *on(server, "--clients", 10))
    load, seen = ended.load, server.stop()
    assert seen["waiting_max"] == 10
    assert seen["connections"] == load.sent + 2, "one for each request, and two of the first look"
    assert load.inflight_mean == pytest.approx(10, rel=0.1)
    assert (load.mode, load.concurrency, load.rate_rps) == ("closed", 10, None)
    assert load.ok / load.elapsed_s <= 500 * 1.02, "the server's capacity"
    assert_accounted(load)


def test_closed_loop_ends_after_its_requests(serve, drive):
    server = serve()
    ended = drive("http.py", "Throughput", *on(server, "--requests", 137), seconds=20)
    assert (ended.load.sent, ended.load.ok, ended.load.warnings) == (137, 137, ())
    assert server.stop()["requests"] == 138  # and the probe


def test_closed_loop_rests_where_it_is_refused(serve, drive):
    ended = drive("http.py", "Throughput", *on(serve(refuse_after=20)), seconds=2)
    load = ended.load
    assert 10 <= load.error_kinds["refused"] <= 150, "it would be ten thousand, if it did not rest"
    assert_accounted(load)


@pytest.mark.parametrize(
    ("failed_in_a_row", "expected_s"), [(1, 0.01), (10, 0.02), (39, 0.08), (10_000, 1.0)]
)
def test_rest_doubles_each_time_all_clients_have_failed(failed_in_a_row, expected_s):
    assert rest_s(failed_in_a_row, clients=10) == pytest.approx(expected_s)


def test_interrupted_run_writes_its_result_and_exits_with_130(serve, tmp_path):
    server, result = serve(), tmp_path / "load.json"
    locust = subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "locust", "-f", str(LOCUST_FILE), "Latency"),
            *("--headless", "--only-summary", "-t", "60s", "--result-json", str(result)),
            *("--host", f"http://127.0.0.1:{server.port}"),
        ],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server.wait_for(60)
    locust.send_signal(signal.SIGINT)
    assert locust.wait(timeout=30) == 130
    load = load_from(json.loads(result.read_text()))
    assert load.warnings == ("stopped before its time",)
    assert load.ok == load.scheduled > 0


def test_keepalive_uses_connections_again(serve, drive):
    server = serve()
    ended = drive("http.py", "Throughput", *on(server, "--connection", "keepalive"))
    assert ended.load.ok > 100
    assert server.stop()["connections"] == 12  # ten clients, and two of the first look


def test_warm_up_is_sent_but_not_counted(serve, drive):
    server = serve()
    ended = drive("http.py", "Latency", *on(server, "--rps", 100, "--warm-up", 1), seconds=2)
    load = ended.load
    assert (load.ok, load.duration_s, len(load.buckets)) == (100, 1.0, 1)
    assert server.stop()["requests"] == 201


def test_inflight_mean_obeys_littles_law(serve, drive):
    ended = drive("http.py", "Latency", *on(serve(service_s=0.002), "--rps", 300))
    load = ended.load
    latency_us, lag_us = (
        HdrHistogram.decode(payload).get_mean_value() for payload in (load.latency_us, load.lag_us)
    )
    # What has not been sent yet is not in flight, but its latency counts already.
    expected = load.ok / load.elapsed_s * (latency_us - lag_us) / 1e6
    assert load.inflight_mean == pytest.approx(expected, rel=0.03)


@pytest.mark.timing
def test_capacity_of_a_known_server_is_found(serve, drive):
    server = serve(service_s=0.002)
    ended = drive("http.py", "Capacity", *on(server, "--step", 2), seconds=24)
    load = ended.load
    assert load.mode == "autothrottle"
    assert load.held_rps == pytest.approx(500, rel=0.1)
    assert load.held_rps < load.failed_rps <= 600
    assert load.rate_rps == load.held_rps
    assert load.ok == load.scheduled
    climb = [step for step in load.steps if step.concurrency is not None]
    assert max(step.concurrency for step in climb) <= 16, "the fewest clients that keep it busy"
    assert_accounted(load)
