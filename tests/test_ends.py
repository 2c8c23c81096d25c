import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent

STUCK_THREAD = """
import threading

def hang_on():
    threading.Event().wait()

def test_one():
    threading.Thread(target=hang_on).start()
"""


def run(folder, source):
    (folder / "test_it.py").write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "ends", "-p", "no:django", "-q"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS), "TESTS_END_WITHIN_S": "0.5"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_run_that_cannot_end_is_ended_and_says_where_it_hangs(tmp_path):
    result = run(tmp_path, STUCK_THREAD)
    assert "1 passed" in result.stdout
    assert result.returncode == 1
    assert "in hang_on" in result.stderr


def test_run_that_ends_is_left_alone(tmp_path):
    result = run(tmp_path, "def test_one():\n    assert True\n")
    assert result.returncode == 0
    assert "Timeout" not in result.stderr
