"""Shared by the tests of every study."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.cli import main


@pytest.fixture
def reported() -> Callable[[Path], str]:
    """Have the report of a folder written again, and return its page."""

    def again(folder: Path) -> str:
        page = folder / "README.md"
        page.unlink(missing_ok=True)
        told = CliRunner().invoke(main, ["report", str(folder)], catch_exceptions=False)
        assert told.output.replace("\n", "") == str(page)
        return page.read_text()

    return again
