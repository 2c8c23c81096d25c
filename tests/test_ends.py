STUCK_THREAD = """
import threading

def hang_on():
    threading.Event().wait()

def test_one():
    threading.Thread(target=hang_on).start()
"""


def test_run_that_cannot_end_is_ended_and_says_where_it_hangs(run_pytest):
    result = run_pytest("ends", STUCK_THREAD, TESTS_END_WITHIN_S="0.5")
    assert "1 passed" in result.stdout
    assert result.returncode == 1
    assert "in hang_on" in result.stderr


def test_run_that_ends_is_left_alone(run_pytest):
    source = "def test_one():\n    assert True\n"
    result = run_pytest("ends", source, TESTS_END_WITHIN_S="0.5")
    assert result.returncode == 0
    assert "Timeout" not in result.stderr
