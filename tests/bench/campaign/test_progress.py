import io
from collections.abc import Callable

import pytest
from rich.console import Console

from bench.plan import plan
from bench.progress import duration, line, watching
from bench.records import Gate, Sample

STOLEN = Gate("steal", ok=False, measured=0.5, limit=0.02, unit="cores", reason="stolen")


def shown(markup: str) -> str:
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as capture:
        console.print(markup)
    return capture.get()


def test_line_shows_the_headline_figures(make_sample: Callable[..., Sample]) -> None:
    text = shown(line(make_sample()))
    assert "latency" in text
    assert "gunicorn" in text
    assert "p50 2 ms, p99 2 ms" in text
    assert "ok" in text


def test_line_of_a_discard_says_why(make_sample: Callable[..., Sample]) -> None:
    assert "discarded: steal 0.50 cores" in shown(line(make_sample(gates=(STOLEN,))))


def test_line_of_a_failure_says_why(make_sample: Callable[..., Sample]) -> None:
    failed = make_sample(load=None, failure="nginx [is] missing")
    assert "failed: nginx [is] missing" in shown(line(failed))


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (89.4, "89 s"), (234, "4 min"), (3600, "60 min")]
)
def test_duration_is_said_as_a_person_would(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("terminal", [True, False])
def test_campaign_is_watched_in_a_terminal_and_in_a_log(
    make_sample: Callable[..., Sample], terminal: bool
) -> None:
    planned = plan("quick", seed=1)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    with watching(planned, console) as watcher:
        arm, test = planned.arms[2], planned.tests[0]
        watcher.starting(1, arm)
        watcher.measuring(1, arm, test, 2)
        watcher.kept(make_sample())
        watcher.progressed(0.5, 120)
        watcher.skipped("daphne-ipc", "it failed to start 2 times")
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "p50 2 ms" in text
    assert "it failed to start 2 times" in text
    assert ("round 1/3 · daphne-redis · latency, attempt 2" in text) is terminal
    assert ("2 min left" in text) is terminal
