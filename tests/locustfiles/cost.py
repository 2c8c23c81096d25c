"""Shows what a request costs this driver and Locust's own FastHttpUser in processor time.

    python tests/locustfiles/cost.py --rounds 5

Ten clients in a closed loop ask a bare server that answers at once; both generators check the body
and keep Locust's statistics. Each is run for a short and for a longer time, and the cost of a
request is the difference in processor time over the difference in requests: starting Locust, which
takes seconds, is in neither. Generator and server have a processor each, where there are two.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

from cross_check import awake, output
from omission import serving

HERE = Path(__file__).resolve().parent
CLIENTS = 10
SHORT_S, LONG_S = 2, 8
CPUS = sorted(os.sched_getaffinity(0))
OURS, THEIRS = "this driver", "FastHttpUser"


def run(generator: str, host: str, connection: str, seconds: int) -> tuple[int, float]:
    """Return how many requests were answered, and the processor time that they and Locust took."""
    if generator == OURS:
        file, clients = HERE.parent.parent / "locustfiles" / "http.py", ["--clients", str(CLIENTS)]
        told = ["Throughput", "--connection", connection, *clients]
    else:
        file = HERE / "fast_http_user.py"
        told = ["--users", str(CLIENTS), "--spawn-rate", "100"]
    always = ["--headless", "--json", "--host", host, "-t", f"{seconds}s"]
    locust = [sys.executable, "-P", "-m", "locust", "-f", str(file)]
    printed, cpu_s = output(["env", f"CONNECTION={connection}", *locust, *told, *always], CPUS[0])
    (row,) = json.loads(printed)
    if row["num_failures"]:
        raise SystemExit(f"{row['num_failures']} requests of {generator} failed")
    return row["num_requests"], cpu_s


def cost_us(generator: str, host: str, connection: str) -> float:
    """Return the processor time of one request, in microseconds."""
    few, short_s = run(generator, host, connection, SHORT_S)
    many, long_s = run(generator, host, connection, LONG_S)
    return 1e6 * (long_s - short_s) / (many - few)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    rounds = parser.parse_args().rounds
    write = sys.stdout.write
    write(f"microseconds of processor time for a request\nround  connection  {OURS}  {THEIRS}\n")
    ratios: dict[str, list[float]] = {"close": [], "keepalive": []}
    with awake.processors(), serving({}, CPUS[-1]) as host:
        for number in range(1, rounds + 1):
            for connection, found in ratios.items():
                ours, theirs = (cost_us(one, host, connection) for one in (OURS, THEIRS))
                found.append(theirs / ours)
                write(f"{number:5}  {connection:10}  {ours:11.1f}  {theirs:12.1f}\n")
                sys.stdout.flush()
    for connection, found in ratios.items():
        write(
            f"{connection}: {THEIRS} takes {statistics.median(found):.2f} times as much "
            f"({min(found):.2f} to {max(found):.2f})\n"
        )


if __name__ == "__main__":
    main()
