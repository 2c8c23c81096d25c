"""``bench baselines`` from the command line, with a real nginx and a real generator."""

import json
import os
import shutil

import pytest
from click.testing import CliRunner

from bench import gates
from bench.baselines import serving
from bench.baselines.sites import nginx_alone
from bench.cli import main


@pytest.mark.server
def test_baselines_leave_data_pages_and_pictures(tmp_path, monkeypatch):
    lacking = serving.missing(nginx_alone()) or (None if shutil.which("wrk") else "wrk is missing")
    if lacking:
        pytest.fail(lacking) if os.environ.get("CI") == "true" else pytest.skip(lacking)
    for limit in ("FOREIGN_CORES", "STEAL_SHARE", "GENERATOR_CORES"):
        monkeypatch.setattr(gates, limit, 9.0)  # other tests may run on this machine
    into = tmp_path / "run"
    asked = ["--rows", "nginx-64", "--rows", "bare", "--generator", "wrk", "--rounds", "1"]
    done = CliRunner().invoke(main, ["baselines", *asked, "--seconds", "3", "--into", str(into)])
    assert done.exit_code == 0, done.output
    data = json.loads((into / "baselines.json").read_text())
    assert {cell["row"] for cell in data["cells"]} == {"nginx-64", "bare"}
    assert all(cell["count"]["failed"] == 0 for cell in data["cells"])
    assert all(cell["server"]["cpu_system_s"] > 0 for cell in data["cells"])
    assert data["finished"] is not None
    assert data["provenance"]["versions"]["nginx"]
    page = (into / "README.md").read_text()
    assert "nginx alone, 64 clients" in page
    assert str(tmp_path) not in page
    assert (into / "ladder.svg").read_text().startswith("<svg")
    assert (into / "concurrency.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rows", "djagno"], "--rows djagno"),
        (["--generator", "weighttp"], "weighttp"),
        (["--rounds", "0"], "--rounds 0"),
    ],
)
def test_baselines_refuse_bad_input_in_a_line(arguments, said):
    done = CliRunner().invoke(main, ["baselines", *arguments])
    assert done.exit_code == 2
    assert said in done.output
    assert len(done.output.strip().splitlines()) == 1
