"""A pytest plugin: a test run that is over ends.

Python waits at its exit for every thread that is not a daemon. One that a test left behind, stuck,
would keep a finished run from ending, and whoever waits for it from learning why.
"""

import faulthandler
import os
import sys

import pytest

PATIENCE_S = float(os.environ.get("TESTS_END_WITHIN_S", "60"))


# Last: the fixtures of the session are gone, and only the exit is left.
@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Show every thread's stack and exit with 1 where Python has not exited by then."""
    faulthandler.dump_traceback_later(PATIENCE_S, exit=True, file=sys.__stderr__)
