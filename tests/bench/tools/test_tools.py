"""Each tool's own report, as recorded from real runs against servers with one fault each."""

import json
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from bench import tools
from bench.errors import BadInput
from bench.tools import TOOLS, absence, chosen, loadtest
from bench.tools.tool import Job, Unreadable

RECORDED = Path(__file__).parent / "recorded"
ROOT = Path(__file__).resolve().parent.parent.parent.parent
JOB = Job("http://127.0.0.1:8000/", clients=10, requests=200, seconds=1, keepalive=False)


def outcome(tool: str, fault: str, variant: str = ""):
    return TOOLS[tool].parsed((RECORDED / f"{fault}.{tool}{variant}.txt").read_text(), JOB)


@pytest.mark.parametrize("tool", ["ab", "hey", "loadtest"])
def test_report_without_faults_has_every_request(tool):
    found = outcome(tool, "ok")
    assert (found.ok, found.failed, found.errors) == (200, 0, {})
    assert found.stated_rps == pytest.approx(found.ok / found.elapsed_s, rel=0.03)
    assert 0 < found.p50_ms <= found.p99_ms


def test_report_of_wrk_is_bounded_by_time():
    found = outcome("wrk", "ok")
    assert found.failed == 0
    assert found.elapsed_s == pytest.approx(1, abs=0.15)
    assert found.ok / found.elapsed_s == pytest.approx(found.stated_rps, rel=0.01)
    assert 0 < found.p50_ms < found.p99_ms < 10


def test_wrks_read_errors_are_no_lost_replies():
    found = outcome("wrk", "ok", "-close")
    assert (found.failed, found.ok) == (0, 12_099)
    assert found.errors == {"read": 12_097}


@pytest.mark.parametrize(
    ("tool", "kind"), [("ab", "status"), ("hey", "status 503"), ("loadtest", "error -1")]
)
def test_wrong_status_is_a_failure(tool, kind):
    found = outcome(tool, "status")
    assert (found.ok, found.failed) == (180, 20)
    assert found.errors == {kind: 20}


def test_wrk_tells_wrong_statuses_apart():
    found = outcome("wrk", "status")
    assert found.errors == {"status": found.failed}
    assert found.ok == 39_309 - 3_931


def test_ab_counts_a_failure_under_several_kinds():
    """It printed 219 failures of 200 requests: 20 resets, and 179 lengths that the first reset set.

    Its first reply was empty, so it took every good one for too long: a defect of ab's, which is
    shown as it is.
    """
    found = outcome("ab", "reset")
    assert found.errors == {"receive": 20, "exceptions": 20, "length": 179}
    assert (found.ok, found.failed) == (21, 179)


def test_ab_without_a_report_is_unreadable():
    with pytest.raises(Unreadable, match=r"timeout specified|198 requests"):
        outcome("ab", "silent")


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [("reset", {"reset": 20}), ("silent", {"timeout": 2}), ("refuse", {"refused": 92})],
)
def test_hey_counts_errors_by_kind_and_not_by_port(fault, kinds):
    found = outcome("hey", fault)
    assert found.errors == kinds
    assert found.ok == 200 - sum(kinds.values())


def test_reply_that_locust_had_not_asked_for_is_an_error_and_no_failure():
    nothing = bytes(HdrHistogram(1, 1000, 3).encode()).decode()
    histograms = dict.fromkeys(("latency_us", "error_latency_us", "lag_us"), nothing)
    counts = {"scheduled": 5, "sent": 5, "ok": 5, "error": 0, "timeout": 0, "dropped": 0}
    words = {"test": "echo", "mode": "closed", "transport": "websocket", "url": ""}
    times = {"rate_rps": None, "duration_s": 1.0, "elapsed_s": 1.0}
    rest = {"connection": "close", "concurrency": 1, "error_kinds": {}, "inflight_mean": 1.0}
    said = json.dumps(words | times | counts | histograms | rest | {"buckets": [], "unasked": 2})
    found = TOOLS["locust"].parsed(said, JOB)
    assert (found.ok, found.failed, found.errors) == (5, 0, {"unasked": 2})


def test_loadtest_does_not_tell_what_failed():
    found = outcome("loadtest", "reset")
    assert (found.ok, found.failed, found.errors) == (180, 20, {"error -1": 20})


def test_keepalive_is_asked_for_in_each_tools_own_way():
    def asked(tool: str, *, keepalive: bool) -> tuple[str, ...]:
        return TOOLS[tool].command(Job(JOB.url, 10, 200, 1, keepalive))

    for tool, flag in (("ab", "-k"), ("loadtest", "-k")):
        assert flag in asked(tool, keepalive=True)
        assert flag not in asked(tool, keepalive=False)
    assert "-disable-keepalive" in asked("hey", keepalive=False)
    assert "-disable-keepalive" not in asked("hey", keepalive=True)
    assert "Connection: close" in asked("wrk", keepalive=False)
    assert "keepalive" in asked("locust", keepalive=True)


def test_wrk_is_run_as_in_the_study():
    command = TOOLS["wrk"].command(Job(JOB.url, 100, 0, 3, keepalive=True))
    assert {"-t4", "-c100", "-d3s"} <= set(command)


def test_tool_that_is_missing_is_named_with_its_install_line(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    found, missing = chosen(())
    assert "locust" in {tool.name for tool in found}
    assert {"ab", "hey", "wrk"} <= {tool.name for tool in missing}
    assert absence(TOOLS["ab"]) == "ab is not installed: apt-get install apache2-utils"
    with pytest.raises(BadInput, match="apt-get install hey"):
        chosen(["hey"])


def test_tool_that_is_none_is_told_the_nearest():
    with pytest.raises(BadInput, match=r"did you mean .*wrk"):
        chosen(["wkr"])


def test_loadtest_is_the_pinned_one_where_it_is_installed(monkeypatch, tmp_path):
    script = tmp_path / "loadtest.js"
    monkeypatch.setattr(loadtest, "ROOT", tmp_path)
    monkeypatch.setattr(loadtest, "_SCRIPT", script)
    monkeypatch.setattr(loadtest.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert loadtest.find() == ("loadtest",)
    script.touch()
    assert loadtest.find() == ("node", "loadtest.js")


def test_lock_of_the_npm_tools_names_no_registry():
    lock = (ROOT / "tools" / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert '"integrity"' in lock


def test_documentation_has_every_tool_with_its_install_line_and_habits():
    page = (ROOT / "docs" / "load-driver.md").read_text()
    for tool in tools.TOOLS.values():
        assert f"| {tool.name} | {tool.install} | {'; '.join(tool.habits)} |" in page
