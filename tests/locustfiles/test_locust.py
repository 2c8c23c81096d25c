"""What Locust itself shows: its web UI, its statistics, its CSV files."""

import csv
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from locustfiles.driver.statistics import bucket_response_time

LOCUST_FILE = Path(__file__).parent.parent.parent / "locustfiles" / "http.py"


@pytest.mark.parametrize(
    ("response_ms", "bucket"),
    [(0.6543, 0.654), (1.4449, 1.44), (412.3, 412.0), (12_345.0, 12_300.0), (0.0, 0.0)],
)
def test_response_time_keeps_three_digits(response_ms, bucket):
    assert bucket_response_time(response_ms) == bucket


def test_csv_has_response_times_below_a_millisecond(serve, drive, tmp_path):
    host = f"http://127.0.0.1:{serve().port}"
    drive("http.py", "Latency", "--host", host, "--csv", tmp_path / "out", "--rps", 200)
    with (tmp_path / "out_stats.csv").open() as lines:
        (row,) = [row for row in csv.DictReader(lines) if row["Name"] == "/"]
    assert row["Request Count"] == "200"
    assert not float(row["50%"]).is_integer()


def test_failures_stay_out_of_locusts_response_times(serve, drive, tmp_path):
    server = serve(fault="silent", every=2)
    arguments = ("--host", f"http://127.0.0.1:{server.port}", "--timeout", 0.5, "--rps", 100)
    drive("http.py", "Latency", *arguments, "--csv", tmp_path / "out")
    with (tmp_path / "out_stats.csv").open() as lines:
        (row,) = [row for row in csv.DictReader(lines) if row["Name"] == "/"]
    assert (row["Request Count"], row["Failure Count"]) == ("100", "50")
    assert float(row["Max Response Time"]) < 500


def test_file_lists_its_tests(drive):
    listed = drive("http.py", "--list").output.split()
    assert {"Latency", "Throughput", "Capacity"} <= set(listed)


def test_latency_runs_where_no_test_is_named(serve, drive):
    host = f"http://127.0.0.1:{serve().port}"
    assert drive("http.py", "--host", host, "--rps", 50).load.test == "latency"


def test_run_without_failures_exits_with_0_and_keeps_the_standard_library(serve, drive):
    """The file is called http.py: Locust imports it as `http`, which others import too."""
    ended = drive("http.py", "--host", f"http://127.0.0.1:{serve().port}", "--rps", 50)
    assert ended.code == 0
    assert "Traceback" not in ended.output


def fetched(url: str, form: dict[str, str] | None = None) -> str:
    """Return the page, once Locust's web server is up."""
    data = urllib.parse.urlencode(form).encode() if form else None
    until = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(url, data, timeout=5) as reply:
                return reply.read().decode()
        except urllib.error.URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def test_web_ui_offers_the_options_and_runs_a_test(serve, drive, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    locust = subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "locust", "-f", str(LOCUST_FILE)),
            *("--web-host", "127.0.0.1", "--web-port", str(port), "--class-picker"),
        ],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        ui = f"http://127.0.0.1:{port}"
        page = fetched(ui)
        for text in ("rps", "max_in_flight", "Latency", "Throughput", "Capacity"):
            assert text in page
        form = {
            "user_count": "1",
            "spawn_rate": "1",
            "host": f"http://127.0.0.1:{serve().port}",
            "user_classes": "Throughput",
            "clients": "3",
            "run_time": "1s",
            "result_json": str(tmp_path / "ui.json"),
        }
        assert json.loads(fetched(f"{ui}/swarm", form))["success"]
        until = time.monotonic() + 20
        while not (tmp_path / "ui.json").exists() and time.monotonic() < until:
            time.sleep(0.1)
        load = json.loads((tmp_path / "ui.json").read_text())
        assert (load["test"], load["concurrency"], load["error"]) == ("throughput", 3, 0)
        stats = json.loads(fetched(f"{ui}/stats/requests"))
        assert stats["stats"][0]["num_requests"] == load["ok"] > 0
    finally:
        locust.send_signal(signal.SIGTERM)
        assert locust.wait(timeout=20) == 0
