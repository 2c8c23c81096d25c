"""The interpreter: which one it is, and how it compares with the distribution's."""

import platform
import sys
from pathlib import Path

import pytest

from bench import interpreter


@pytest.fixture
def system(tmp_path):
    """An interpreter of a version, written "3 11", that does the shell's ``work`` for its work."""

    def make(version, work):
        path = tmp_path / "python3"
        path.write_text(f'#!/bin/sh\ncase "$*" in *-c*) echo {version};; *) {work};; esac\n')
        path.chmod(0o755)
        return str(path)

    return make


def test_description_tells_builds_of_one_version_apart():
    assert interpreter.description() == (
        f"{platform.python_version()} ({sys.base_prefix}, {platform.python_compiler()})"
    )


def test_slowness_is_the_time_to_that_of_the_systems(system):
    assert interpreter.slowness(system("3 11", "echo 0.001")) > 100
    assert interpreter.slowness(system("3 11", "echo 60000")) < 0.01


def test_both_do_the_same_work(system):
    assert 0.5 < interpreter.slowness(system("3 11", f'exec {sys.executable} "$@"')) < 2


def test_interpreter_too_old_for_the_project_is_not_given_the_work(system):
    assert interpreter.slowness(system("3 6", "exit 1")) is None


def test_nothing_is_compared_where_this_is_the_systems_own(tmp_path):
    own = tmp_path / "python3"
    own.symlink_to(Path(sys.executable).resolve())
    assert interpreter.slowness(str(own)) is None
    assert interpreter.slowness(str(tmp_path / "none")) is None
