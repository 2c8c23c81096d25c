"""wrk, of Debian's package of that name: bounded by time, and never by a number of requests."""

from bench.tools.text import milliseconds, number, whole
from bench.tools.tool import Job, Outcome, Tool, on_path, present

THREADS = 4  # as in the study: `wrk -t4 -c100 -d3s`


def command(job: Job) -> tuple[str, ...]:
    closed = () if job.keepalive else ("-H", "Connection: close")
    threads = min(THREADS, job.clients)
    settings = (f"-t{threads}", f"-c{job.clients}", f"-d{job.seconds}s")
    return ("--latency", "--timeout", f"{job.timeout_s}s", *settings, *closed, job.url)


def parsed(text: str, _: Job) -> Outcome:
    """Read wrk's report.

    Its read errors are no lost replies: it counts one whenever a connection ends after a reply
    that did not announce it.
    """
    replies = int(number(r"^\s+(\d+) requests in", text))
    elapsed_ms = milliseconds(r"requests in", text)
    status = whole(r"^\s+Non-2xx or 3xx responses: (\d+)", text)
    kinds = {
        kind: whole(rf"^\s+Socket errors:.*{kind} (\d+)", text)
        for kind in ("connect", "read", "write", "timeout")
    }
    return Outcome(
        ok=replies - status,
        elapsed_s=(elapsed_ms or 0.0) / 1000,
        stated_rps=number(r"^Requests/sec:\s+([\d.]+)", text),
        errors=present(kinds | {"status": status}),
        failed=status + kinds["connect"] + kinds["write"] + kinds["timeout"],
        mean_ms=milliseconds(r"^\s+Latency", text),
        p50_ms=milliseconds(r"^\s+50%", text),
        p99_ms=milliseconds(r"^\s+99%", text),
        latency_step_ms=0.001,
    )


WRK = Tool(
    "wrk",
    install="apt-get install wrk",
    find=on_path("wrk"),
    command=command,
    parsed=parsed,
    counts_requests=False,
    habits=(
        f"runs {THREADS} threads, as in the study, with as many connections each: what is left of "
        "`-c` it does not open",
        "runs for a time and not for a number; requests under way at its end count nowhere",
        "counts a read error for each connection that ends after a reply which did not announce it",
    ),
)
