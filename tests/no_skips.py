"""A pytest plugin: with CI=true a skipped test is a failure.

A test that is skipped because something is missing protects nobody, and nobody notices. What cannot
apply says so: its reason begins with "not applicable: ".
"""

import os

import pytest

NOT_APPLICABLE = "not applicable: "


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    # Of a skip, longrepr is (file, line, "Skipped: reason").
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("CI") == "true":
        config.pluginmanager.register(NoSkips(), "no-skips")


class NoSkips:
    """Collects the tests that were skipped without good reason, and fails the run for them."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = _reason(report)
            if not reason.startswith(NOT_APPLICABLE):
                self.skipped.append(f"{report.nodeid}: {reason}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skipped:
            terminalreporter.section("skipped, and CI=true allows no skips", red=True)
            for line in self.skipped:
                terminalreporter.line(line)
