"""This project's own load driver, under Locust: over HTTP as the other tools, and WebSockets."""

import json
import sys
from pathlib import Path

from hdrh.histogram import HdrHistogram

from bench.load import LoadSpec
from bench.load import command as load_command
from bench.records import Load, load_from
from bench.tools.tool import LIMIT_S, Job, Outcome, Tool, Unreadable

RESULT = "load.json"


def command(job: Job) -> tuple[str, ...]:
    return spec_command(
        LoadSpec(
            "throughput",
            "closed",
            job.url,
            duration_s=LIMIT_S,
            connection="keepalive" if job.keepalive else "close",
            concurrency=job.clients,
            requests=job.requests,
            timeout_s=job.timeout_s,
            expect_body=job.expect_body,
        )
    )


def spec_command(spec: LoadSpec) -> tuple[str, ...]:
    """Return the command line after the interpreter; it writes ``RESULT`` where ``{}`` stands."""
    return load_command(spec, Path("{}"))[1:]


def parsed(text: str, _: Job) -> Outcome:
    try:
        return outcome(load_from(json.loads(text)))
    except (ValueError, TypeError, KeyError) as error:
        raise Unreadable(f"its result is not one: {error}") from error


def outcome(load: Load) -> Outcome:
    """Return what ``load`` came to. Of batches, the time is theirs and not what lay between."""
    errors = dict(load.error_kinds)
    errors |= {name: n for name in ("timeout", "dropped", "unasked") if (n := getattr(load, name))}
    elapsed_s = load.phases_s.get("whole", load.elapsed_s)
    latencies = HdrHistogram.decode(load.latency_us.encode())
    some = latencies.get_total_count() > 0
    return Outcome(
        ok=load.ok,
        elapsed_s=elapsed_s,
        stated_rps=load.ok / elapsed_s if elapsed_s else 0.0,
        errors=errors,
        failed=load.error + load.timeout + load.dropped,
        mean_ms=latencies.get_mean_value() / 1000 if some else None,
        p50_ms=latencies.get_value_at_percentile(50) / 1000 if some else None,
        p99_ms=latencies.get_value_at_percentile(99) / 1000 if some else None,
        latency_step_ms=0.001,
        in_flight=load.inflight_mean,
        phases_s=load.phases_s,
        batches=load.batches,
        socket_errors=load.socket_errors,
    )


LOCUST = Tool(
    "locust",
    install="pip install -r requirements.txt",
    find=lambda: (sys.executable,),
    command=command,
    parsed=parsed,
    result_file=RESULT,
    compares_bodies=True,
    habits=(
        "compares each reply, byte by byte",
        "its clients rest for 10 ms after a failure, longer while all fail",
        "counts requests per second of good replies only",
    ),
)
