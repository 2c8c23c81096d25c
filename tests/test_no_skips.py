import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

PASSING = "def test_one():\n    assert True\n"
SKIPPING = 'import pytest\n\ndef test_two():\n    pytest.skip("redis-server is missing")\n'
SKIPPED_MODULE = 'import pytest\n\npytest.skip("no such thing", allow_module_level=True)\n'
NOT_APPLICABLE = (
    'import pytest\n\ndef test_two():\n    pytest.skip("not applicable: one process")\n'
)
EXPECTED_FAILURE = "import pytest\n\n@pytest.mark.xfail\ndef test_two():\n    assert False\n"


@pytest.fixture
def run(tmp_path):
    def run(source, **environment):
        (tmp_path / "test_it.py").write_text(PASSING + source)
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no_skips", "-p", "no:django", "-q"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(TESTS), "CI": "", **environment},
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.parametrize(
    ("source", "named"), [(SKIPPING, "redis-server is missing"), (SKIPPED_MODULE, "no such thing")]
)
def test_skip_is_a_failure_in_ci_and_is_named(run, source, named):
    result = run(source, CI="true")
    assert result.returncode not in (0, 2)
    assert named in result.stdout


def test_skip_is_no_failure_elsewhere(run):
    assert run(SKIPPING).returncode == 0


@pytest.mark.parametrize("source", ["", NOT_APPLICABLE, EXPECTED_FAILURE])
def test_what_is_no_skip_or_not_applicable_is_no_failure(run, source):
    assert run(source, CI="true").returncode == 0
