"""The generator of a fan-out that is Locust, with ``locustfiles/fanout.py``: for small cells.

It is started and spoken with as ``bench.fanout.generator`` is, and says the same. Locust counts to
itself until it ends, so it reports once, when it is told what was published.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.environment import ROOT
from bench.errors import BadInput
from bench.fanout.generator import say
from bench.fanout.spec import Spec, spec_from
from locustfiles.driver.deliveries import SUBSCRIBED

DRAIN_S = 1.5  # for a hub's last rounds, and for what is on its way
ENDS_S = 30.0


@contextmanager
def locust(spec: Spec, result: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run Locust for the length of the block, from when all its sockets are subscribed."""
    if spec.transport != "websocket" or spec.churning or not spec.subscriptions:
        raise BadInput("Locust's subscribers are WebSockets, with topics, and stay to the end")
    process = subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "locust", "-f", "locustfiles/fanout.py", "--headless"),
            *("--host", spec.url, "--result-json", str(result), "--only-summary"),
            *("--connections", str(spec.users), "--subscriptions", str(spec.subscriptions)),
            *("--topics", str(spec.topics), "--message-bytes", str(spec.message_bytes)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if SUBSCRIBED in line:
                break
        else:
            raise SystemExit("".join(said))
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def report(spec: Spec, found: Mapping[str, Any], published: Mapping[str, int]) -> dict[str, Any]:
    """Return what Locust found as ``bench.fanout.generator`` says it.

    All were subscribed before anything was published. So a topic's first record is to be number 1,
    and what is short of the last that was published has gone missing.
    """
    counts = dict(found["counters"])
    due = sum(published[name] * users for name, users in spec.subscribers().items())
    late, reached, closed = (counts.pop(name) for name in ("late", "reached", "closed_early"))
    return counts | {
        "lost": counts["lost"] + late,
        "missing": due - reached,
        "users": spec.users,
        "refused": 0,
        "closed": closed,
        "gaps": 0,
        "churned": dict.fromkeys(("received", "lost", "duplicated", "reordered", "visits"), 0),
        "latency_us": found["latency_us"],
        "at_monotonic_s": time.monotonic(),
    }


def generate(spec: Spec, told: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield what to say: that all are there, and at last what came."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "fanout.json"
        with locust(spec, result) as process:
            yield {"ready": True, "ramp": [], "users": spec.users}
            published = next(json.loads(line)["published"] for line in told)
            time.sleep(DRAIN_S)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=ENDS_S)
        if not result.is_file():
            raise SystemExit(said)
        yield report(spec, json.loads(result.read_text()), published)


def main() -> None:
    for line in generate(spec_from(sys.argv[1]), sys.stdin):
        say(**line)


if __name__ == "__main__":
    main()
