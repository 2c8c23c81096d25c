"""The Locust user that drives a test: one user a process makes all the requests.

A test is a user class, chosen as Locust has it: named on the command line, or picked in the web UI
with ``--class-picker``. Where none is named the first one in the file runs.
"""

import gc
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gevent
from gevent.greenlet import Greenlet
from locust import User, task
from locust.exception import StopUser
from locust.stats import CSV_STATS_INTERVAL_SEC

from . import workers
from .division import divided
from .options import BadOption, Option, checked
from .pacing import Loop
from .record import Recorder
from .target import BadTarget, Target
from .ticker import clock

logger = logging.getLogger(__name__)

LEAD_S = 0.05  # from now to the first arrival: the schedule begins when everything is in place
CSV_STATS_FLUSH_MARGIN_S = 0.2
CRASHED = 3  # the exit code after a fault of the driver's own
RUN_TIME = "driver_run_time_s"  # where the run time is kept from Locust


@dataclass
class Run:
    """One test in progress: when it began, when it shall end, and how to end it sooner."""

    start: float  # of what is counted, after the warm-up
    duration_s: float | None  # None: until it is stopped
    loop: Loop | None = None
    stopped_early: bool = False
    crash: BaseException | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def end(self) -> float:
        return float("inf") if self.duration_s is None else self.start + self.duration_s

    def stop(self, *, crash: BaseException | None = None) -> None:
        """End the test before its time."""
        self.crash = self.crash or crash
        self.stopped_early = True
        if self.loop is not None:
            self.loop.stop()


class DrivenUser(User):
    """Runs the test once and then ends Locust's run. Subclasses are the tests.

    ``test`` and ``mode`` name the test in the JSON; ``options`` are the options that are its own.
    """

    abstract = True
    test = ""
    mode = ""
    transport = ""
    options: tuple[Option, ...] = ()
    divisible = True  # among workers

    @task
    def drive(self) -> None:
        if getattr(self.environment, "run", None) is not None:
            logger.warning("one user drives the whole load: the others have nothing to do")
            raise StopUser
        try:
            self.read_options()
            self._run()
        except (BadOption, BadTarget) as error:
            logger.error("%s", error)
            self.environment.runner.log_exception("local", str(error), "")
            self._tell_master(error)
        except Exception as error:
            logger.exception("the load driver failed")
            self.environment.process_exit_code = CRASHED
            self._tell_master(error)
        gevent.spawn(_end, self.environment)
        raise StopUser

    def read_options(self) -> None:
        """Set ``values`` and ``duration_s``. Raises ``BadOption``."""
        parsed = self.environment.parsed_options
        self.share = workers.share(self.environment)
        self.values = divided(checked(parsed, self.options), self.share)
        warm_up_s = self.values["warm_up"]
        # Locust's run time is all the time there is; the warm-up comes out of it.
        run_time_s = getattr(parsed, RUN_TIME, None) or parsed.run_time
        self.duration_s = run_time_s - warm_up_s if run_time_s else None
        if self.duration_s is not None and self.duration_s <= 0:
            raise BadOption(
                f"--warm-up {warm_up_s:g}: leaves nothing of the run time of {run_time_s} s"
            )

    def client(self) -> Any:
        """Return what sends, connected where it stays so. ``close`` ends it."""
        raise NotImplementedError

    def measure(self, run: Run, client: Any) -> dict[str, Any]:
        """Run the test, and return its part of the JSON."""
        raise NotImplementedError

    def identity(self, client: Any) -> dict[str, Any]:
        """Return url and connection, and what else the client knows, for the JSON."""
        raise NotImplementedError

    def find_target(self) -> Target:
        """Return where the load goes. Raises ``BadTarget``."""
        raise NotImplementedError

    def report(self, intended: float, now: float, failure: str | None, length: int) -> None:
        """Tell Locust about a reply: timed from the intended send, and untimed if it failed.

        Locust keeps one histogram for all; without a time a failure is counted and not timed.
        """
        self.environment.events.request.fire(
            request_type=self.request_type,
            name=self.values["path"],
            response_time=(now - intended) * 1000 if failure is None else None,
            response_length=length,
            exception=failure,
            context={},
        )

    def _run(self) -> None:
        # A headless run has looked already; a web UI may name another host for each run.
        self.target = vars(self.environment).pop("looked_up", None) or self.find_target()
        client = self.client()
        run = Run(clock() + LEAD_S + self.values["warm_up"], self.duration_s)
        self.environment.run = run
        try:
            with quiet_garbage_collector(timed=self.duration_s is not None), loud_callbacks(run):
                measured = self.measure(run, client)
        finally:
            self.environment.run = None
            client.close()
        if run.crash is not None:
            raise run.crash
        self._write(run, {**self.identity(client), **measured})
        if self.environment.parsed_options.csv_prefix:
            # Locust writes its CSV files by a clock, and not once more at the end.
            gevent.sleep(CSV_STATS_INTERVAL_SEC + CSV_STATS_FLUSH_MARGIN_S)

    def _write(self, run: Run, measured: dict[str, Any]) -> None:
        if run.stopped_early:
            run.warnings.append("stopped before its time")
        for warning in run.warnings:
            logger.warning("%s", warning)
        self._deliver(
            {
                "test": self.test,
                "mode": self.mode,
                "transport": self.transport,
                "duration_s": float(run.duration_s or clock() - run.start),
                "rate_rps": None,
                "concurrency": None,
                **measured,
                "warnings": run.warnings,
            }
        )

    def _deliver(self, whole: dict[str, Any]) -> None:
        """Write the result or, as a worker, hand it to the master."""
        if self.environment.parsed_options.worker:
            whole["boot_id"] = workers.boot_id()
            self.environment.runner.send_message(workers.RESULT, whole)
            return
        write(self.environment, whole)

    def _tell_master(self, error: Exception) -> None:
        if self.environment.parsed_options.worker:
            self.environment.runner.send_message(workers.FAULT, f"a worker failed: {error}")


def write(environment: Any, whole: dict[str, Any]) -> None:
    """Write the result, if a file was named for it."""
    path = environment.parsed_options.result_json
    if path:
        for bucket in whole.get("buckets", ()):
            bucket.pop("ok_us", None)
        Path(path).write_text(json.dumps(whole) + "\n")


def recorded(recorder: Recorder) -> dict[str, Any]:
    """Return what ``recorder`` counted, as JSON; raise if a request got lost."""
    counts = recorder.counts()
    if counts["sent"] != counts["ok"] + counts["error"] + counts["timeout"]:
        raise AssertionError(f"the driver has lost requests: {counts}")
    measured = recorder.as_json()
    for bucket, latencies_us in zip(measured["buckets"], recorder.seconds_us(), strict=True):
        bucket["ok_us"] = latencies_us  # for a master to add up; it is not written
    return measured


@contextmanager
def quiet_garbage_collector(*, timed: bool) -> Iterator[None]:
    """Keep the collector from pausing the schedule.

    What exists now is never looked at again; a test with an end collects nothing until then, as a
    request leaves no cycles behind.
    """
    gc.collect()
    gc.freeze()
    if timed:
        gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


@contextmanager
def loud_callbacks(run: Run) -> Iterator[None]:
    """End ``run`` if a callback of the event loop raises: gevent only prints it and goes on."""
    hub = gevent.get_hub()
    handle_error = hub.handle_error

    def stop_and_handle(context: Any, kind: Any, value: Any, trace: Any) -> None:
        if not isinstance(context, Greenlet):
            run.stop(crash=value)
        handle_error(context, kind, value, trace)

    hub.handle_error = stop_and_handle
    try:
        yield
    finally:
        hub.handle_error = handle_error


def _end(environment: Any) -> None:
    """End Locust's run: a web UI stays up for the next one, and a worker's end is the master's."""
    if environment.parsed_options.worker:
        return
    if environment.parsed_options.headless:
        environment.runner.quit()
    else:
        environment.runner.stop()
