"""How often a request on a rung of the ladder goes to a thread: counted, not measured."""

import json
import os
import subprocess
from collections.abc import Iterable

from bench import supervise
from bench.baselines import serving
from bench.baselines.row import Row
from bench.environment import ROOT

_LIMIT_S = 30


def hops(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Return, by row, ``hops`` (calls handed to a thread) and ``threads`` (started for it)."""
    return {row.name: counted(row) for row in rows if "BASELINE_HANDLER" in row.site.variables}


def counted(row: Row) -> dict[str, int]:
    """Run one request through the row's application in a process of its own."""
    done = subprocess.run(
        (str(supervise.BIN / "python"), "-m", "baselines.hops", row.path),
        check=True,
        cwd=ROOT,
        env=serving.process_environment(row.site, os.environ),
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
    )
    return {name: int(count) for name, count in json.loads(done.stdout).items()}
