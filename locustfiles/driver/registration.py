"""Hooks the driver into Locust: its options, what it refuses, who runs, and how it ends."""

import argparse
import logging
import signal
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NoReturn

import gevent
from locust import User, events

from . import statistics, workers
from .division import Share, divided
from .options import BadOption, Option, add_to
from .target import BadTarget
from .ticker import clock
from .user import RUN_TIME, write

logger = logging.getLogger(__name__)

CONNECT_S = 30.0  # what opening sockets may add to the run time
END_S = 1.0  # Locust's own end of the run time may come this much before it
INTERRUPTED = 130  # the exit code after Ctrl-C


def register(options: tuple[Option, ...]) -> None:
    """Hook the driver into Locust. A locust file calls this once, with the options of its tests."""
    statistics.install()

    @events.init_command_line_parser.add_listener
    def add_options(parser: Any) -> None:
        add_to(parser, options)
        _know_tests(parser)

    @events.init.add_listener
    def begin(environment: Any, **_: Any) -> None:
        parsed = environment.parsed_options
        if parsed.worker:
            workers.follow(environment, lambda: _interrupt(environment))
            return
        if parsed.run_time is not None and parsed.run_time <= 0:
            _refuse(f"--run-time {parsed.run_time}: a test lasts 1 s or more")
        _take_over_run_time(environment)
        if not parsed.class_picker:
            _only_one(environment)
        if parsed.master:
            _lead(environment)
        if parsed.headless:
            _look(environment)
            gevent.signal_handler(signal.SIGINT, _interrupted, environment)

    @events.test_start.add_listener
    def allow_draining(environment: Any, **_: Any) -> None:
        parsed = environment.parsed_options
        drain_s = CONNECT_S + float(parsed.timeout)
        # Locust's default of 0 would cut off what is in flight, and not count it.
        environment.stop_timeout = max(environment.stop_timeout, drain_s)
        environment.began = clock()
        if not parsed.worker:
            _only_one(environment)

    @events.test_stopping.add_listener
    def stop(environment: Any, **_: Any) -> None:
        run = getattr(environment, "run", None)
        run_time = environment.parsed_options.run_time
        at_its_end = run_time and clock() > environment.began + run_time - END_S
        if run is not None and not at_its_end:
            run.stop()


def _refuse(message: object) -> NoReturn:
    sys.stderr.write(f"locust: error: {message}\n")
    raise SystemExit(2)


def _only_one(environment: Any) -> None:
    """Leave one test: the one that was named, or the first in the file."""
    tests = environment.user_classes
    if len(tests) > 1 and environment.parsed_options.user_classes:
        if environment.parsed_options.headless:
            _refuse(f"one test at a time: {' or '.join(sorted(each.__name__ for each in tests))}")
        logger.warning("one test at a time: %s runs", tests[0].__name__)
    environment.user_classes = tests[:1]


def _know_tests(parser: Any) -> None:
    """Make ``parser`` refuse a test that does not exist, which Locust does late and curtly."""

    def named(text: str) -> str:
        names = {each.__name__ for each in _below(User) if not each.abstract}
        if text not in names:
            near = get_close_matches(text, names, cutoff=0.4) or sorted(names)
            raise argparse.ArgumentTypeError(f"no test {text!r}: did you mean {' or '.join(near)}?")
        return text

    for action in parser._actions:
        if action.dest == "user_classes":
            action.type = named


def _below(parent: type) -> Iterator[Any]:
    for child in parent.__subclasses__():
        yield child
        yield from _below(child)


def _take_over_run_time(environment: Any) -> None:
    """End a headless run from here: Locust stops for some 20 ms as it begins to stop.

    It would do so just before the last arrivals are due.
    """
    parsed = environment.parsed_options
    if parsed.headless:
        # The master hands to its workers what is not an option of Locust's own.
        setattr(parsed, RUN_TIME, parsed.run_time)
        parsed.run_time = None


def _lead(environment: Any) -> None:
    """Be the master, of tests that can be divided."""
    test = environment.user_classes[0]
    if not test.divisible:
        _refuse(f"{test.__name__} runs in one process: leave --master out")
    environment.master = workers.Master(environment, lambda whole: write(environment, whole))


def _interrupt(environment: Any) -> None:
    """End the test that runs, if one does. What has been measured is written."""
    run = getattr(environment, "run", None)
    if run is not None:
        run.stop()


def _interrupted(environment: Any) -> None:
    """Ctrl-C: the first ends the test and lets it report, the second ends everything."""
    if environment.process_exit_code == INTERRUPTED or environment.runner.user_count == 0:
        environment.process_exit_code = INTERRUPTED
        environment.runner.quit()
        return
    environment.process_exit_code = INTERRUPTED
    if environment.parsed_options.master:
        environment.master.interrupt()
    else:
        _interrupt(environment)


def _look(environment: Any) -> None:
    """Refuse what can be seen to be wrong before a test starts, in one line."""
    test = environment.user_classes[0](environment)
    test.host = environment.host
    try:
        test.read_options()
        divided(test.values, Share(0, environment.parsed_options.expect_workers))
        environment.looked_up = test.find_target()
    except (BadOption, BadTarget) as error:
        _refuse(error)
