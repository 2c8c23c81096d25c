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
