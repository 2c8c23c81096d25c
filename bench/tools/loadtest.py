"""loadtest, from npm: the generator of 2016 and of the HTTP balancing study."""

import shutil

from bench.tools.text import number, optional
from bench.tools.tool import ROOT, Job, Outcome, Tool

# `make tools` puts it there; see tools/package.json.
_SCRIPT = ROOT / "tools" / "node_modules" / "loadtest" / "bin" / "loadtest.js"


def find() -> tuple[str, ...] | None:
    """Find the one that this project has pinned, or one that is installed for everybody."""
    if _SCRIPT.exists() and shutil.which("node"):
        return ("node", str(_SCRIPT.relative_to(ROOT)))
    return ("loadtest",) if shutil.which("loadtest") else None


def command(job: Job) -> tuple[str, ...]:
    # By default it takes half of all processors; the generator has one.
    kept = ("-k",) if job.keepalive else ()
    counts = ("-n", str(job.requests), "-c", str(job.clients))
    return ("--cores", "1", "--timeout", str(1000 * job.timeout_s), *kept, *counts, job.url)


def parsed(text: str, _: Job) -> Outcome:
    completed = int(number(r"^Completed requests:\s+(\d+)", text))
    failed = int(number(r"^Total errors:\s+(\d+)", text))
    return Outcome(
        ok=completed - failed,
        elapsed_s=number(r"^Total time:\s+([\d.]+) s", text),
        stated_rps=number(r"^Effective rps:\s+([\d.]+)", text),
        errors=_kinds(text),
        failed=failed,
        mean_ms=optional(r"^Mean latency:\s+([\d.]+) ms", text),
        p50_ms=optional(r"^\s+50%\s+(\d+) ms", text),
        p99_ms=optional(r"^\s+99%\s+(\d+) ms", text),
        latency_step_ms=1.0,
    )


def _kinds(text: str) -> dict[str, int]:
    """Return errors by status. Most are -1 to it, whatever it was."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        code, _, rest = line.strip().partition(":")
        words = rest.split()
        if words[1:] == ["errors"] and code.lstrip("-").isdigit():
            kind = "error -1" if code == "-1" else f"status {code}"
            found[kind] = int(words[0])
    return found


LOADTEST = Tool(
    "loadtest",
    install="make tools (or npm install --global loadtest)",
    find=find,
    command=command,
    parsed=parsed,
    habits=(
        "prints whole milliseconds",
        "counts failures in its requests per second",
        "does not tell a refusal, a reset, a timeout and a wrong status apart",
        "is one process of JavaScript: often it is its processor that is the limit",
    ),
)
