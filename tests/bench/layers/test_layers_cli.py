"""``bench layers`` from the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.cli import main
from bench.layers import rounds, services


def test_layers_leaves_data_page_and_picture(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(rounds, "QUICK_DURATION_S", 0.2)
    into = tmp_path / "run"
    asked = ["--quick", "--rounds", "2", "--measure", "one_way", "--layer", "ipc"]
    done = CliRunner().invoke(main, ["layers", *asked, "--into", str(into)])
    assert done.exit_code == 0, done.output
    data = json.loads((into / "layers.json").read_text())
    assert [cell["round"] for cell in data["cells"]] == [1, 2]
    assert data["finished"] is not None
    assert data["provenance"]["versions"]["channels"]
    assert (into / "layers.svg").read_text().startswith("<svg")
    assert (into / "layers.png").read_bytes().startswith(b"\x89PNG")
    assert "channels_ipc" in (into / "README.md").read_text()
    assert "not measured" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--layer", "redsi"], "unknown layer 'redsi'"),
        (["--measure", "idel"], "unknown measure 'idel'"),
        (["--rounds", "0"], "--rounds 0"),
    ],
)
def test_layers_refuses_bad_input_in_a_line(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["layers", *arguments])
    assert done.exit_code == 2
    assert said in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_layers_with_a_missing_cell_says_so_and_fails(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("bench.layers.cell.CHANNELS1_PYTHON", tmp_path / "python")
    asked = ["--rounds", "1", "--measure", "outstanding_32", "--layer", "asgi_ipc"]
    done = CliRunner().invoke(main, ["layers", *asked, "--into", str(tmp_path / "run")])
    assert done.exit_code == 1
    assert "make channels1-env" in done.output
    assert "**missing**" in (tmp_path / "run" / "README.md").read_text()


def test_layers_without_redis_server_names_the_package(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(services.shutil, "which", lambda *_, **__: None)
    asked = ["--rounds", "1", "--measure", "idle", "--into", str(tmp_path / "run")]
    done = CliRunner().invoke(main, ["layers", *asked])
    assert done.exit_code == 2
    assert "apt-get install redis-server" in done.output


def test_layers_that_need_no_redis_server_start_none() -> None:
    with services.running(redis=False) as (places, pid):
        assert pid is None
        assert not places.redis_socket.exists()
