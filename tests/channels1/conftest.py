import os
from pathlib import Path

import pytest

from bench.environment import ROOT
from bench.variants import STACKS


@pytest.fixture(scope="session")
def python() -> Path:
    """The Python of the environment with the last releases; without it CI fails, others skip."""
    stack = STACKS["channels1"]
    executable = ROOT / stack.environment / "bin" / "python"
    if not executable.exists():
        missing = f"{stack.environment} is missing: {stack.made_by}"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    return executable


@pytest.fixture(scope="session")
def python017() -> Path:
    """The Python with exactly what was measured in 2016: 3.6, which no machine has by itself."""
    stack = STACKS["channels017"]
    executable = ROOT / stack.environment / "bin" / "python"
    if not executable.exists():
        pytest.skip(f"not applicable: no Python 3.6 here; {stack.made_by}")
    return executable
