"""ApacheBench, of Debian's apache2-utils."""

from bench.tools.text import number, optional, whole
from bench.tools.tool import Job, Outcome, Tool, on_path, present


def command(job: Job) -> tuple[str, ...]:
    # -r: go on after an error; without it the first reset ends the run.
    kept = ("-k",) if job.keepalive else ()
    counts = ("-n", str(job.requests), "-c", str(job.clients))
    return ("-r", "-q", "-s", str(job.timeout_s), *kept, *counts, job.url)


def parsed(text: str, _: Job) -> Outcome:
    """Read ab's report.

    One failed request may stand under several kinds: a reset is an error of receiving, an
    exception and a wrong length. So the largest kind is what failed, and not their sum.
    """
    completed = int(number(r"^Complete requests:\s+(\d+)", text))
    kinds = {
        kind: whole(rf"^\s+\(Connect.*{kind}: (\d+)", text)
        for kind in ("Receive", "Length", "Exceptions")
    } | {"Connect": whole(r"^\s+\(Connect: (\d+)", text)}
    status = whole(r"^Non-2xx responses:\s+(\d+)", text)
    failed = min(completed, max(kinds.values()) + status)
    return Outcome(
        ok=completed - failed,
        elapsed_s=number(r"^Time taken for tests:\s+([\d.]+) seconds", text),
        stated_rps=number(r"^Requests per second:\s+([\d.]+)", text),
        errors=present({kind.lower(): count for kind, count in kinds.items()} | {"status": status}),
        failed=failed,
        mean_ms=optional(r"^Total:\s+\d+\s+([\d.]+)", text),
        p50_ms=optional(r"^\s+50%\s+(\d+)", text),
        p99_ms=optional(r"^\s+99%\s+(\d+)", text),
        latency_step_ms=1.0,
    )


AB = Tool(
    "ab",
    install="apt-get install apache2-utils",
    find=on_path("ab"),
    command=command,
    parsed=parsed,
    habits=(
        "speaks HTTP/1.0, so `-k` is a wish that a server may refuse",
        "prints whole milliseconds",
        "compares the length of each reply with the first one's, and counts one failure under "
        "several kinds",
        "gives up altogether when nothing has happened for its timeout",
    ),
)
