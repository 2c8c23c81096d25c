"""The interpreter: which one it is, and how it compares with the distribution's."""

import platform
import sys
from pathlib import Path

import pytest

from bench import interpreter


@pytest.fixture
def system(tmp_path):
    """An interpreter that only says which version it is and what the work took it."""

    def make(said, script="echo"):
        path = tmp_path / "python3"
        path.write_text(f"#!/bin/sh\n{script} {said}\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_description_tells_builds_of_one_version_apart():
    assert interpreter.description() == (
        f"{platform.python_version()} ({sys.base_prefix}, {platform.python_compiler()})"
    )


def test_slowness_is_the_time_to_that_of_the_systems(system):
    assert interpreter.slowness(system("3.11.2 0.001")) > 100
    assert interpreter.slowness(system("3.11.2 60000")) < 0.01


def test_both_do_the_same_work(system):
    same = system('"$@"', script=f"exec {sys.executable}")
    assert 0.5 < interpreter.slowness(same) < 2


def test_nothing_is_compared_with_an_interpreter_too_old_for_the_project(system):
    assert interpreter.slowness(system("3.10.12 0.001")) is None


def test_nothing_is_compared_where_this_is_the_systems_own(tmp_path):
    own = tmp_path / "python3"
    own.symlink_to(Path(sys.executable).resolve())
    assert interpreter.slowness(str(own)) is None
    assert interpreter.slowness(str(tmp_path / "none")) is None
