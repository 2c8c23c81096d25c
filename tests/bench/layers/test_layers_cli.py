"""``bench layers`` from the command line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.cli import main
from bench.layers import rounds, services
from bench.layers.cell import Cell
from bench.layers.measures import MEASURES
from bench.layers.results import read


def shorter(monkeypatch: pytest.MonkeyPatch, measure: str) -> None:
    """Measure for a moment, on a machine that is taken for ours."""
    monkeypatch.setitem(MEASURES, measure, replace(MEASURES[measure], quick_s=0.2))
    monkeypatch.setattr("bench.layers.cell.discarded", lambda *_: ())


def test_layers_leaves_data_page_and_picture(tmp_path: Path, monkeypatch) -> None:
    shorter(monkeypatch, "one_way")
    into = tmp_path / "run"
    asked = ["--quick", "--rounds", "2", "--measure", "one_way", "--layer", "ipc"]
    done = CliRunner().invoke(main, ["layers", *asked, "--into", str(into)])
    assert done.exit_code == 0, done.output
    data = json.loads((into / "layers.json").read_text())
    assert [cell["round"] for cell in data["cells"]] == [1, 2]
    assert data["finished"] is not None
    assert data["provenance"]["versions"]["channels"]
    assert len(data["provenance"]["pinning"]["one_way"]["processes"]) == 2
    for name in ("layers-detail.svg", "layers-detail-dark.svg"):
        assert (into / name).read_text().startswith("<svg")
    assert (into / "layers-detail.png").read_bytes().startswith(b"\x89PNG")
    assert "channels_ipc" in (into / "README.md").read_text()
    assert "not measured" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--layer", "redsi"], "unknown layer 'redsi'"),
        (["--measure", "idel"], "unknown measure 'idel'"),
        (["--rounds", "0"], "--rounds 0"),
        (["--resume", "there", "--quick"], "leave the others out"),
        (["--resume", "nowhere"], "nowhere is not a results folder"),
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


def test_layers_interrupted_goes_on_where_it_ended(tmp_path: Path, monkeypatch) -> None:
    """Ctrl-C in the second cell of four; the first is not measured again."""
    into, asked = tmp_path / "run", []

    def measured(measure, peer, stage, duration_s, number) -> Cell:
        asked.append((number, peer.name))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return Cell(measure.name, peer.name, number, {"requests_per_s": 1.0})

    monkeypatch.setattr(rounds, "measured", measured)
    chosen = ["--measure", "outstanding_32", "--layer", "ipc", "--layer", "asgi_ipc"]
    first = CliRunner().invoke(main, ["layers", *chosen, "--rounds", "2", "--into", str(into)])
    assert first.exit_code == 0, first.output
    assert read(into).finished is None
    assert "**Interrupted**" in (into / "README.md").read_text()
    second = CliRunner().invoke(main, ["layers", "--resume", str(into)])
    assert second.exit_code == 0, second.output
    assert asked[1] == asked[2]
    assert len(set(asked)) == 4
    assert read(into).finished is not None
    assert len(read(into).resumed) == 1


def test_layers_goes_on_with_more_rounds_where_too_few_count(tmp_path: Path, monkeypatch) -> None:
    into, asked = tmp_path / "run", []

    def measured(measure, peer, stage, duration_s, number) -> Cell:
        asked.append(number)
        return Cell(measure.name, peer.name, number, {"requests_per_s": 1.0})

    monkeypatch.setattr(rounds, "measured", measured)
    chosen = ["--measure", "outstanding_32", "--layer", "ipc", "--rounds", "2"]
    CliRunner().invoke(main, ["layers", *chosen, "--into", str(into)])
    same = CliRunner().invoke(main, ["layers", "--resume", str(into), "--rounds", "2"])
    assert (same.exit_code, asked) == (2, [1, 2])
    assert "--rounds 2: 2 are asked for already" in same.output
    more = CliRunner().invoke(main, ["layers", "--resume", str(into), "--rounds", "3"])
    assert (more.exit_code, asked) == (0, [1, 2, 3]), more.output
    assert "from 2 rounds to 3." in (into / "README.md").read_text()
    assert read(into).rounds == 3


def test_layers_measures_again_what_was_disturbed(tmp_path: Path, monkeypatch) -> None:
    attempts = []

    def measured(measure, peer, stage, duration_s, number) -> Cell:
        attempts.append(number)
        why = ("noise",) if len(attempts) < 3 else ()
        return Cell(measure.name, peer.name, number, {"p99_ratio": 1.0}, discarded=why)

    monkeypatch.setattr(rounds, "measured", measured)
    asked = ["--rounds", "1", "--measure", "interference", "--layer", "ipc"]
    done = CliRunner().invoke(main, ["layers", *asked, "--into", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    found = read(tmp_path / "run").cells
    assert [(one.attempt, one.counts) for one in found] == [(1, False), (2, False), (3, True)]
    assert "2 of 3 attempts were discarded" in (tmp_path / "run" / "README.md").read_text()


def test_layers_disturbed_too_often_is_missing_and_fails(tmp_path: Path, monkeypatch) -> None:
    def measured(measure, peer, stage, duration_s, number) -> Cell:
        return Cell(measure.name, peer.name, number, {"p99_ratio": 1.0}, discarded=("noise",))

    monkeypatch.setattr(rounds, "measured", measured)
    asked = ["--rounds", "1", "--measure", "interference", "--layer", "ipc"]
    done = CliRunner().invoke(main, ["layers", *asked, "--into", str(tmp_path / "run")])
    assert done.exit_code == 1
    assert len(read(tmp_path / "run").cells) == rounds.ATTEMPTS
    assert "missing interference, ipc: noise" in done.output
