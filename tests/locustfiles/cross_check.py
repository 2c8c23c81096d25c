"""Compares the load driver with other load generators, on one server and in the same minutes.

    python tests/locustfiles/cross_check.py http://127.0.0.1:9001/ --cpu 0 --connection close

Each round runs every generator once, in shuffled order, at the same rate. Pin the server to another
processor. Needs hey and, for keep-alive, h2load (Debian: hey, nghttp2-client). ``--into`` leaves a
page with the medians, and every run as JSON.
"""

import argparse
import csv
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from hdrh.histogram import HdrHistogram

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from bench import awake, provenance, spreads  # noqa: E402 - the project is not installed

# hey and h2load spread the rate over so many clients, who all tick at once: with ten of them
# requests come in bursts of ten. One sends evenly, as long as replies come within 1 / rate.
CLIENTS = 1


class Seen(NamedTuple):
    """What one run of one generator reported. ``lag_ms`` is None where it does not say."""

    requests: int
    p50_ms: float
    p99_ms: float
    cpu_s: float
    lag_p50_ms: float | None = None
    lag_p99_ms: float | None = None


def output(arguments: Sequence[str], cpu: int | None) -> tuple[str, float]:
    """Return what a program prints, and the processor time it took."""
    pinned = ["taskset", "--cpu-list", str(cpu), *arguments] if cpu is not None else arguments
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(pinned, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{arguments[0]} ended with {ended.returncode}:\n{ended.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def from_latencies(latencies_ms: Sequence[float], cpu_s: float) -> Seen:
    cuts = statistics.quantiles(latencies_ms, n=100)
    return Seen(len(latencies_ms), cuts[49], cuts[98], cpu_s)


def ours(asked: argparse.Namespace) -> Seen:
    host, _, path = asked.url.removeprefix("http://").partition("/")
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "load.json"
        arguments = [
            *(sys.executable, "-P", "-m", "locust", "-f", "locustfiles/http.py", "Latency"),
            *("--headless", "--only-summary", "--loglevel", "ERROR", "--host", f"http://{host}"),
            *("--path", f"/{path}", "--rps", str(asked.rate), "-t", f"{asked.seconds}s"),
            *("--connection", asked.connection, "--result-json", str(result)),
        ]
        _, cpu_s = output(arguments, asked.cpu)
        load = json.loads(result.read_text())
    latency, lag = (HdrHistogram.decode(load[key]) for key in ("latency_us", "lag_us"))
    figures = [
        histogram.get_value_at_percentile(percentile) / 1000
        for histogram in (latency, lag)
        for percentile in (50, 99)
    ]
    return Seen(load["ok"], *figures[:2], cpu_s, *figures[2:])


def hey(asked: argparse.Namespace) -> Seen:
    keepalive = ["-disable-keepalive"] if asked.connection == "close" else []
    rate = ["-c", str(CLIENTS), "-q", f"{asked.rate / CLIENTS:g}"]
    arguments = ["hey", "-o", "csv", "-z", f"{asked.seconds}s", *rate, *keepalive, asked.url]
    text, cpu_s = output(arguments, asked.cpu)
    rows = csv.DictReader(text.splitlines())
    return from_latencies([float(row["response-time"]) * 1000 for row in rows], cpu_s)


def h2load(asked: argparse.Namespace) -> Seen:
    with tempfile.NamedTemporaryFile("r") as log:
        rate = ["-c", str(CLIENTS), "--rps", f"{asked.rate / CLIENTS:g}"]
        arguments = ["h2load", "--h1", "-D", str(asked.seconds), *rate, "--log-file", log.name]
        _, cpu_s = output([*arguments, asked.url], asked.cpu)
        latencies_us = [float(line.split("\t")[2]) for line in log]
    return from_latencies([latency / 1000 for latency in latencies_us], cpu_s)


GENERATORS: dict[str, dict[str, Callable[[argparse.Namespace], Seen]]] = {
    "close": {"this driver": ours, "hey": hey},
    "keepalive": {"this driver": ours, "hey": hey, "h2load": h2load},
}


Runs = Mapping[str, Sequence[Seen]]  # by generator, a run a round


def page(runs: Runs, asked: argparse.Namespace, found: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of a page on ``runs``."""
    machine = found["machine"]
    assert isinstance(machine, dict)
    yield "# The load driver beside others, on the same server in the same minutes\n"
    yield (
        f"{datetime.now(UTC):%Y-%m-%d}, commit {found['commit']}. "
        f"{provenance.described(machine)}. {asked.rate:g} "
        f"requests/s to {asked.server}, connection: {asked.connection}, {asked.seconds} s a run, "
        f"{asked.rounds} rounds in shuffled order. Median (least to greatest).\n"
    )
    yield "| generator | p50 ms | p99 ms | schedule lag p99 ms | CPU s |"
    yield "|---|--:|--:|--:|--:|"
    for name, seen in runs.items():
        columns = (
            [one.p50_ms for one in seen],
            [one.p99_ms for one in seen],
            [one.lag_p99_ms for one in seen if one.lag_p99_ms is not None],
            [one.cpu_s for one in seen],
        )
        yield f"| {name} | {' | '.join(map(ranged, columns))} |"
    yield "\nThis driver's latency to that of each, by round:\n"
    for name in list(runs)[1:]:
        for figure in ("p50_ms", "p99_ms"):
            ratios = [
                getattr(ours, figure) / getattr(theirs, figure)
                for ours, theirs in zip(runs["this driver"], runs[name], strict=True)
            ]
            enough = asked.rounds >= spreads.INTERVAL_ROUNDS
            told = spreads.times(spreads.ratio_over(ratios, enough=enough))
            yield f"- {figure.removesuffix('_ms')}, {name}: {told}"


def ranged(values: Sequence[float]) -> str:
    found = spreads.spread(values)
    return f"{found.median:.2f} ({found.low:.2f} to {found.high:.2f})" if found else ""


def publish(runs: Runs, asked: argparse.Namespace) -> None:
    """Write the page and the runs into a new folder."""
    pinned = provenance.Pinning(None, None if asked.cpu is None else (asked.cpu,))
    command = provenance.command_line()
    found = provenance.provenance(pinned=pinned, seed=asked.seed, command=command)
    asked.into.mkdir(parents=True)
    (asked.into / "README.md").write_text("\n".join(page(runs, asked, found)) + "\n")
    data = {name: [one._asdict() for one in seen] for name, seen in runs.items()}
    text = json.dumps({"provenance": found, "runs": data}, indent=1)
    (asked.into / "runs.json").write_text(text + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--connection", choices=list(GENERATORS), default="close")
    parser.add_argument("--rate", type=float, default=300)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="of the order")
    parser.add_argument("--cpu", type=int, help="the processor of the generators")
    parser.add_argument("--server", default="a server", help="what is at the URL, for the page")
    parser.add_argument("--into", type=Path, help="a new folder for a page and the data")
    with awake.processors():
        compare(parser.parse_args())


def compare(asked: argparse.Namespace) -> None:
    chance, write = random.Random(asked.seed), sys.stdout.write
    runs: dict[str, list[Seen]] = {name: [] for name in GENERATORS[asked.connection]}
    write("round  generator    requests  p50 ms  p99 ms  lag p50  lag p99  cpu s\n")
    for number in range(1, asked.rounds + 1):
        generators = list(GENERATORS[asked.connection].items())
        chance.shuffle(generators)
        for name, generator in generators:
            seen = generator(asked)
            runs[name].append(seen)
            lags = [f"{lag:8.3f}" if lag is not None else "       –" for lag in seen[4:]]
            write(
                f"{number:5}  {name:11}  {seen.requests:8}  {seen.p50_ms:6.3f}  {seen.p99_ms:6.3f}"
                f" {lags[0]} {lags[1]}  {seen.cpu_s:5.2f}\n"
            )
            sys.stdout.flush()
    if asked.into:
        publish(runs, asked)


if __name__ == "__main__":
    main()
