"""The redis-server of the run, and the matrix at its end."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import matrix, redis_server

OUTCOMES = {
    "passed": matrix.KEEPS,
    "xfailed": matrix.BREAKS,
    "xpassed": matrix.KEEPS,
    "skipped": matrix.NOT_APPLICABLE,
    "failed": "FAILED",
    "error": "ERROR",
}


@pytest.fixture(scope="session")
def redis_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a redis-server of our own. Missing: skipped at home, failed in CI."""
    if redis_server.binary() is None:
        missing = f"no redis-server: {redis_server.INSTALL}"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    with redis_server.running(tmp_path_factory.mktemp("redis")) as socket:
        yield socket


@pytest.fixture(scope="session")
def ipc_directory() -> Iterator[Path]:
    """A runtime directory of the run's own, below nobody else's."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        yield Path(folder) / "ipc"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what this run found of each rule and layer."""
    found = {}
    for outcome, word in OUTCOMES.items():
        for report in terminalreporter.stats.get(outcome, []):
            place = re.search(r"::(test_\w+)\[(\w+)\]$", getattr(report, "nodeid", ""))
            if place and "TestChannelLayers" in report.nodeid:
                found[place.groups()] = missing_or(word, report)
    if found:
        terminalreporter.section("rules and layers")
        for line in matrix.in_terminal(found):
            terminalreporter.write_line(line)


def missing_or(word: str, report: pytest.TestReport) -> str:
    """A skip for want of redis-server is no "n/a"."""
    skipped_for_want = word == matrix.NOT_APPLICABLE and "not applicable" not in str(
        report.longrepr
    )
    return "not run" if skipped_for_want else word
