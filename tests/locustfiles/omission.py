"""Shows what Locust's constant_throughput and this driver each see of one and the same stall.

    python tests/locustfiles/omission.py --rounds 3

A server of known speed stands still once, for half a second. What somebody who comes by at 300
requests/s must find is known beforehand; each generator says what it found, in interleaved rounds.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from hdrh.histogram import HdrHistogram

HERE = Path(__file__).resolve().parent
RATE_RPS = 300
SECONDS = 20
STALL_S = 0.5
SERVICE_S = 0.00187
STALL = {"service_s": SERVICE_S, "stall_at": 2000, "stall_s": STALL_S}


def true_p99_ms() -> float:
    """Return the 99th percentile of the time from when a request should have been sent.

    The slowest 1 % came in the first ``SECONDS / 100`` of the stall; the last of them waits for
    the rest of the stall and for those before it in the queue.
    """
    slowest_s = SECONDS / 100
    return 1000 * (STALL_S - slowest_s * (1 - RATE_RPS * SERVICE_S) + SERVICE_S)


def locust(file: Path, host: str, *arguments: str) -> None:
    subprocess.run(
        [
            *(sys.executable, "-P", "-m", "locust", "-f", str(file), "--headless"),
            *("--only-summary", "--host", host, "-t", f"{SECONDS}s", *arguments),
        ],
        capture_output=True,
        check=True,
    )


def closed(users: int, host: str, folder: Path) -> tuple[int, float, float]:
    """Return how many requests constant_throughput made, its median and its 99th percentile."""
    options = ["--users", str(users), "--spawn-rate", "100", "--csv", str(folder / "out")]
    locust(HERE / "constant_throughput.py", host, *options)
    with (folder / "out_stats.csv").open() as lines:
        (row,) = [row for row in csv.DictReader(lines) if row["Name"] == "/"]
    return int(row["Request Count"]), float(row["50%"]), float(row["99%"])


def opened(host: str, folder: Path) -> tuple[int, float, float]:
    """Return the same of this project's driver."""
    result = folder / "load.json"
    file = HERE.parent.parent / "locustfiles" / "http.py"
    locust(file, host, "--rps", str(RATE_RPS), "--result-json", str(result))
    load = json.loads(result.read_text())
    latency = HdrHistogram.decode(load["latency_us"])
    p50_us, p99_us = (latency.get_value_at_percentile(percentile) for percentile in (50, 99))
    return load["sent"], p50_us / 1000, p99_us / 1000


DRIVERS = {
    "constant_throughput, 10 users": partial(closed, 10),
    "constant_throughput, 300 users": partial(closed, 300),
    "this driver": opened,
}


@contextmanager
def serving(behaviour: Mapping[str, object], cpu: int | None = None) -> Iterator[str]:
    """Yield the address of a ``server.py`` that behaves so, on processor ``cpu`` where given."""
    pinned = [] if cpu is None else ["taskset", "--cpu-list", str(cpu)]
    server = subprocess.Popen(
        [*pinned, sys.executable, str(HERE / "server.py"), json.dumps(behaviour)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.kill()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    rounds = parser.parse_args().rounds
    write = sys.stdout.write
    write(f"due: {RATE_RPS * SECONDS} requests, p99 {true_p99_ms():.0f} ms\n")
    write("round  driver                          requests  p50 ms  p99 ms\n")
    for number in range(1, rounds + 1):
        for name, measure in DRIVERS.items():
            with serving(STALL) as host, tempfile.TemporaryDirectory() as folder:
                requests, p50_ms, p99_ms = measure(host, Path(folder))
            write(f"{number:5}  {name:30}  {requests:8}  {p50_ms:6.1f}  {p99_ms:6.1f}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
