"""``bench http`` and ``bench echo`` on a deployment, with every generator that is installed."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from bench.balancing.reading import read
from bench.cli import main
from bench.tools import TOOLS
from bench.variants import CONTROL, Variant

HEADS = ("times", "per second", "per CPU-s", "CPU max", "MB", "pids", "errors")


@pytest.mark.server
def test_terminal_has_each_tool_with_what_the_server_used_for_it(tmp_path, installed, monkeypatch):
    installed(CONTROL)
    missing = replace(TOOLS["wrk"], find=lambda: None)
    monkeypatch.setitem(TOOLS, "wrk", missing)
    monkeypatch.setenv("COLUMNS", "300")  # of the terminal: nothing is folded
    cell = ("-c", "4", "-n", "200", "--path", "/", "--seconds", "1", "--rounds", "1")
    ended = CliRunner().invoke(main, ["http", *cell, "--into", str(tmp_path / "out"), CONTROL.name])
    assert ended.exit_code == 0, ended.output
    lines = ended.output.splitlines()
    assert "without wrk: wrk is not installed: apt-get install wrk" in lines
    found = {tool.name for tool in TOOLS.values() if tool.find()}
    assert found > {"locust"}
    heads = next(line for line in lines if "per CPU-s" in line)
    assert heads.split() == " ".join(HEADS).split()
    rows = [line.split() for line in lines if line.startswith(f"{CONTROL.name} ")]
    assert {row[1] for row in rows} == found
    readings = read(tmp_path / "out" / "raw")
    assert {one.tool for one in readings} == found
    assert {one.outcome.ok for one in readings if TOOLS[one.tool].counts_requests} == {200}
    assert all(one.server.cpu_user_s > 0 for one in readings)
    for tool in {one.tool for one in readings if one.valid}:
        row = next(row for row in rows if row[1] == tool)
        assert row[2] == "1.00x"
        assert "–" not in row


@pytest.mark.server
def test_echo_has_what_the_server_used_and_what_opening_and_closing_took(
    tmp_path, installed, monkeypatch
):
    variant = installed(Variant("uvicorn", "ipc"))
    monkeypatch.setenv("COLUMNS", "300")
    cell = ("-n", "3", "-c", "20", "--seconds", "1", "--rounds", "1", "--detail")
    ended = CliRunner().invoke(main, ["echo", *cell, "--into", str(tmp_path / "out"), variant.name])
    assert ended.exit_code == 0, ended.output
    *_, one = read(tmp_path / "out" / "raw")  # a busy machine has it measured again
    assert one.outcome.ok == one.outcome.batches * 60
    assert one.server.cpu_user_s > 0
    assert one.server.processes_max >= 1
    heads = next(line for line in ended.output.splitlines() if "per CPU-s" in line)
    assert "connects/s" in heads
    assert "closes/s" in heads
    page = (tmp_path / "out" / "README.md").read_text()
    for row in ("| connects/s |", "| closes/s |", "| memory, MB |", "| processes |"):
        assert row in page
