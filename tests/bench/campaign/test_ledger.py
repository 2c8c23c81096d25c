import errno
import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench import records
from bench.errors import BadInput
from bench.ledger import LOCAL, new_folder, opened
from bench.plan import plan
from bench.provenance import PROJECT, Pinning, provenance
from bench.records import Sample

STARTED = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def test_campaign_and_samples_are_there_as_soon_as_they_are_known(
    make_sample: Callable[..., Sample], tmp_path: Path
) -> None:
    folder = new_folder(tmp_path / "new" / "one", STARTED)
    ledger = opened(plan("quick", seed=1), folder, STARTED, {"seed": 1})
    assert records.read_campaign(folder).finished is None
    ledger.keep(make_sample())
    assert records.read(folder / "raw") == [make_sample()]


def test_campaign_that_came_to_its_end_says_after_how_many_rounds(tmp_path: Path) -> None:
    ledger = opened(plan("quick", seed=1), new_folder(tmp_path, STARTED), STARTED, {})
    ledger.close(rounds=2)
    written = records.read_campaign(tmp_path)
    assert written.finished is not None
    assert (written.rounds, written.control, written.twin) == (2, "gunicorn", "gunicorn (again)")
    assert set(written.configurations) == {"gunicorn", "daphne-redis", "daphne-ipc"}
    assert "gunicorn" in written.configurations["gunicorn"]["supervisord.conf"]


def test_folder_without_a_name_is_one_of_the_unpublished() -> None:
    folder = new_folder(None, STARTED.replace(year=1999))
    try:
        assert folder == LOCAL / "19991121-120000"
    finally:
        (folder / "raw").rmdir()
        folder.rmdir()


@pytest.mark.parametrize("name", ["file", "full"])
def test_nothing_is_ever_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match=f"{name} is .*: name a folder that is new or empty"):
        new_folder(tmp_path / name, STARTED)
    assert (tmp_path / "file").read_text() == "mine"
    assert [one.name for one in (tmp_path / "full").iterdir()] == ["thesis.txt"]


def test_full_disk_is_one_line(
    make_sample: Callable[..., Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(plan("quick", seed=1), new_folder(tmp_path, STARTED), STARTED, {})

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(BadInput, match=r"cannot write to .*: No space left on device"):
        ledger.keep(make_sample())
    assert ledger.samples == []


def test_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot write to"):
        new_folder(tmp_path / "file" / "folder", STARTED)


def test_what_is_written_names_neither_host_nor_home_nor_the_place_of_the_project(
    make_sample: Callable[..., Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, home = "alices-laptop", tmp_path / "home" / "alice"
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    monkeypatch.setattr(Path, "home", lambda: home)
    leak = f"{host}: {PROJECT}/settings/base.py, {home}/.venv/bin/python and {PROJECT}"
    told = provenance(pinned=Pinning((1,), (0,)), seed=1, command=["run", "--into", str(home)])
    folder = new_folder(tmp_path / "results", STARTED)
    ledger = opened(plan("quick", seed=1), folder, STARTED, told)
    ledger.keep(
        make_sample(failure=leak, log_tail=leak, command=(leak,), identity={"settings": leak})
    )
    ledger.close(1)
    for path in folder.rglob("*.json"):
        text = json.dumps(json.loads(path.read_text()))
        for secret in (host, str(home), str(PROJECT)):
            assert secret not in text, f"{path.name} tells {secret}"
