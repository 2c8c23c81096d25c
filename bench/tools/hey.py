"""hey, of Debian's package of that name."""

import re
from collections import Counter

from bench.tools.text import number, optional
from bench.tools.tool import Job, Outcome, Tool, on_path

# What stands in Go's error texts, and under what it is counted: texts hold port numbers.
_KINDS = {
    "connection reset": "reset",
    "connection refused": "refused",
    "Client.Timeout": "timeout",
    "EOF": "closed early",
    "assign requested address": "no local port left",
    "too many open files": "no file handle left",
}


def command(job: Job) -> tuple[str, ...]:
    closed = () if job.keepalive else ("-disable-keepalive",)
    counts = ("-n", str(job.requests), "-c", str(job.clients))
    return (*closed, "-t", str(job.timeout_s), *counts, job.url)


def parsed(text: str, _: Job) -> Outcome:
    replies = {int(status): int(count) for status, count in _rows(text, r"(\d{3})", r"responses")}
    ok = sum(count for status, count in replies.items() if 200 <= status < 300)
    errors = Counter(
        {f"status {status}": n for status, n in replies.items() if not 200 <= status < 300}
    )
    listed = text.partition("Error distribution:")[2]
    for times, said in re.findall(r"^\s+\[(\d+)\]\s+(.*)$", listed, re.MULTILINE):
        errors[_kind(said)] += int(times)
    return Outcome(
        ok=ok,
        elapsed_s=number(r"^\s+Total:\s+([\d.]+) secs", text),
        stated_rps=number(r"^\s+Requests/sec:\s+([\d.]+)", text),
        errors=dict(errors),
        failed=sum(errors.values()),
        mean_ms=_ms(r"^\s+Average:\s+([\d.]+) secs", text),
        p50_ms=_ms(r"^\s+50% in ([\d.]+) secs", text),
        p99_ms=_ms(r"^\s+99% in ([\d.]+) secs", text),
        latency_step_ms=0.1,
    )


def _rows(text: str, status: str, noun: str) -> list[tuple[str, str]]:
    return re.findall(rf"^\s+\[{status}\]\s+(\d+) {noun}", text, re.MULTILINE)


def _ms(pattern: str, text: str) -> float | None:
    seconds = optional(pattern, text)
    return None if seconds is None else round(seconds * 1000, 1)


def _kind(said: str) -> str:
    return next((kind for part, kind in _KINDS.items() if part in said), said)


HEY = Tool(
    "hey",
    install="apt-get install hey",
    find=on_path("hey"),
    command=command,
    parsed=parsed,
    habits=(
        "prints tenths of a millisecond",
        "sends a multiple of its clients: `-n` is rounded down",
        "counts failures in its requests per second",
        "sends a request again by itself where a kept connection has been closed",
    ),
)
