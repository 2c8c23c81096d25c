import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bench import interpreter, provenance
from bench.provenance import PROJECT, Pinning, anonymous, pinning


def test_processors_of_both_sides_count_where_this_one_is_kept_to_one(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    assert provenance.machine(Pinning(server=(1, 2), generator=(0,)))["usable_processors"] == 3


@pytest.mark.parametrize(
    ("cpus", "siblings", "expected"),
    [
        ({0}, [], Pinning(None, None)),
        ({0, 1}, [{0}, {1}], Pinning((1,), (0,))),
        ({0, 1}, [{0, 1}, {0, 1}], Pinning((1,), (0,))),  # nothing better is to be had
        ({0, 1, 2, 3}, [{0, 2}, {1, 3}], Pinning((1, 3), (0,))),
        ({2, 3, 5}, [], Pinning((3, 5), (2,))),
    ],
)
def test_pinning_keeps_server_and_generator_apart(
    cpus: set[int], siblings: list[set[int]], expected: Pinning
) -> None:
    assert pinning(cpus, siblings) == expected


def test_server_that_is_not_pinned_has_every_processor() -> None:
    assert Pinning(None, None).server_cores == len(os.sched_getaffinity(0))
    assert Pinning((1, 2, 3), (0,)).server_cores == 3


def test_siblings_include_every_processor() -> None:
    assert set().union(*provenance.siblings()) >= os.sched_getaffinity(0)


def test_provenance_goes_to_json_and_says_what_a_repetition_needs() -> None:
    told = provenance.provenance(pinned=Pinning((1,), (0,)), seed=7, command=["python"])
    assert json.loads(json.dumps(told)) == told
    assert told["seed"] == 7
    assert told["pinning"] == {"server": "1", "generator": "0"}
    assert {"python", "Django", "channels", "daphne", "gunicorn", "asgiref"} <= set(
        told["versions"]
    )
    assert told["machine"]["kernel"].startswith("Linux ")
    assert told["sysctls"]["net.core.somaxconn"].isdigit()
    assert told["limits"]["open files"][0] > 0


def test_versions_are_those_of_the_pins() -> None:
    pins = dict(
        line.split("#")[0].strip().split("==")
        for line in (PROJECT / "requirements.txt").read_text().splitlines()
        if "==" in line
    )
    found = provenance.versions()
    assert {"Django", "channels", "locust"} <= found.keys()
    assert "pytest" not in found
    assert found["python"] == anonymous(interpreter.description())
    assert all(found[name] == version for name, version in pins.items() if name in found)


def test_commit_is_missing_outside_of_a_work_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "PROJECT", tmp_path)
    assert provenance.commit() is None
    assert provenance.uncommitted_changes() is None


def test_commit_tells_whether_files_were_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(provenance, "PROJECT", tmp_path)
    git("init")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-m", "Begin")
    assert len(provenance.commit() or "") == 40
    assert provenance.uncommitted_changes() is False
    (tmp_path / "file").write_text("two")
    assert provenance.uncommitted_changes() is True


def test_program_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_PROGRAMS", {"no-such-server": ("--version",)})
    assert "no-such-server" not in provenance.versions()


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (
            ["/somewhere/bench/__main__.py", "run", "--full"],
            ["python", "-m", "bench", "run", "--full"],
        ),
        (["/usr/bin/pytest", "-q"], ["pytest", "-q"]),
    ],
)
def test_command_line_is_what_a_person_types(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], expected: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    assert provenance.command_line() == expected


@pytest.fixture
def somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose names are known."""
    monkeypatch.setattr(provenance, "PROJECT", Path("/srv/alice/project"))
    monkeypatch.setattr(Path, "home", lambda: Path("/srv/alice"))
    monkeypatch.setattr(socket, "gethostname", lambda: "box")


@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("File /srv/alice/project/settings/base.py", "File settings/base.py"),
        ("cd /srv/alice/project; ls", "cd .; ls"),
        ("unix:///srv/alice/project/run/redis.sock", "unix://run/redis.sock"),
        ("/srv/alice/.cache", "~/.cache"),
        ("/srv/alice", "~"),
        ("/srv/alice2 and /srv/alice/project2", "/srv/alice2 and ~/project2"),
        ("on box, or http://box:8000/", "on host, or http://host:8000/"),
        ("box.office, mailbox and box-like", "box.office, mailbox and box-like"),
    ],
)
def test_anonymous_text_names_no_machine(text: str, expected: str) -> None:
    assert anonymous(text) == expected


@pytest.mark.usefixtures("somewhere")
def test_anonymous_reaches_into_lists_and_dicts() -> None:
    assert anonymous({"a": ["/srv/alice/x", 3, None], "b": ("/srv/alice",)}) == {
        "a": ["~/x", 3, None],
        "b": ("~",),
    }
