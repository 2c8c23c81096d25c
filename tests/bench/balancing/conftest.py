"""Readings out of thin air, and real servers to measure."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.balancing.kernel import Tcp
from bench.balancing.reading import Reading
from bench.records import Gate, Machine, Usage
from bench.tools.tool import Outcome

SERVERS = Path(__file__).resolve().parent.parent.parent / "locustfiles"


@pytest.fixture
def reading() -> Callable[..., Reading]:
    """Make a reading of 1,000 requests in a second, but for what is given."""

    def make(
        tool: str = "locust",
        column: str = "one worker",
        cell: str = "32 x 20000, close",
        *,
        round_: int = 1,
        ok: int = 1000,
        failed: int = 0,
        opened: int = 1000,
        generator_s: float = 0.3,
        server_s: float = 0.9,
        foreign: bool = False,
        attempt: int = 1,
        **outcome: object,
    ) -> Reading:
        said = Gate("foreign CPU", not foreign, 0.0, 0.03, "cores", "others were at work")
        return Reading(
            column=column,
            variant="gunicorn",
            cell=cell,
            tool=tool,
            clients=32,
            round=round_,
            attempt=attempt,
            started="2026-01-01T00:00:00+00:00",
            outcome=Outcome(
                ok=ok,
                elapsed_s=1.0,
                stated_rps=ok,
                failed=failed,
                **{"mean_ms": 30.0, "p50_ms": 29.0, "latency_step_ms": 0.001, **outcome},
            ),
            server=Usage(server_s, 0.0, 0.95, 50_000_000, 60_000_000, 2),
            generator=Usage(generator_s, 0.0, generator_s, None, None, 1),
            machine=Machine(1.0, 1.2, 0.0, 0.0),
            tcp=Tcp(opened, 0, 0),
            gates=(said,),
        )

    return make


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Start a test server of the load driver's; return its port."""
    with ExitStack() as stack:

        def start(program: str, *arguments: object) -> int:
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, str(SERVERS / program), *map(str, arguments)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            return int(process.stdout.readline())

        yield lambda program="server.py", *arguments, **behaviour: start(
            program, *(arguments or (json.dumps(behaviour),))
        )
