"""The driver under Locust's ``--master`` and ``--worker``: one load, several processes.

The master sends no requests. Each worker runs one user, which drives its share, and hands over what
it has measured; when every one has, the master merges it, writes the one result and ends the run.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
from locust.runners import STATE_MISSING

from .division import Share, merged

logger = logging.getLogger(__name__)

RESULT, FAULT, INTERRUPT = "load result", "load fault", "load interrupt"
LOOK_S = 0.1
INCOMPLETE = 3  # the exit code where a worker is gone or has failed: its requests are not counted


def share(environment: Any) -> Share:
    """Return which part of the load is this process's: all of it, unless it is a worker."""
    parsed = environment.parsed_options
    if not parsed.worker:
        return Share()
    return Share(environment.runner.worker_index % parsed.expect_workers, parsed.expect_workers)


def boot_id() -> str:
    """Return what tells the monotonic clocks of two machines apart."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Master:
    """Collects what the workers measured. ``write`` is given the merged result."""

    def __init__(self, environment: Any, write: Callable[[dict[str, Any]], None]) -> None:
        self.environment = environment
        self.write = write
        self.expected: set[str] = set()
        self.parts: dict[str, dict[str, Any]] = {}
        self.faults: dict[str, str] = {}
        runner = environment.runner
        runner.register_message(RESULT, self._take)
        runner.register_message(FAULT, self._note)
        parsed = environment.parsed_options
        # One user a worker, all at once.
        parsed.num_users = parsed.spawn_rate = parsed.expect_workers
        environment.events.test_start.add_listener(self._begin)

    def interrupt(self) -> None:
        """Let the workers end their tests now, and hand over what they have."""
        self.environment.runner.send_message(INTERRUPT)

    def _begin(self, **_: Any) -> None:
        self.parts.clear()
        self.faults.clear()
        self.expected = set(self.environment.runner.clients)
        gevent.spawn(self._collect)

    def _take(self, msg: Any, **_: Any) -> None:
        self.parts[msg.node_id] = msg.data

    def _note(self, msg: Any, **_: Any) -> None:
        self.faults[msg.node_id] = msg.data

    def _collect(self) -> None:
        while self._present() - self.parts.keys() - self.faults.keys():
            gevent.sleep(LOOK_S)
        gone = self.expected - self.parts.keys() - self.faults.keys()
        said = [*self.faults.values(), *(f"worker {one} is gone" for one in sorted(gone))]
        for each in said:
            logger.error("%s", each)
        if said:
            self.environment.process_exit_code = INCOMPLETE
        if self.parts:
            whole = merged(list(self.parts.values()))
            whole["warnings"] += [f"{each}: its requests are not counted" for each in said]
            self.write(whole)
        if self.environment.parsed_options.headless:
            self.environment.runner.quit()
        else:
            self.environment.runner.stop()

    def _present(self) -> set[str]:
        clients = self.environment.runner.clients
        return {
            one for one in self.expected if one in clients and clients[one].state != STATE_MISSING
        }


def follow(environment: Any, interrupt: Callable[[], None]) -> None:
    """Make this worker do what the master says: ``interrupt`` ends its test."""
    environment.runner.register_message(INTERRUPT, lambda **_: interrupt())
