"""What a load generator is asked for, what it says came of it, and how it is found."""

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT_S = 180.0  # one run of one tool, whatever it was asked for


class Unreadable(ValueError):  # noqa: N818 - it says what is wrong
    """A tool's output does not have what it should; the text says what."""


@dataclass(frozen=True)
class Job:
    """What every tool is asked alike: ``clients`` who each wait for their reply.

    Either ``requests`` bounds it or, for a tool that cannot count, ``seconds``. ``expect_body`` is
    for tools that compare replies; None compares nothing.
    """

    url: str
    clients: int
    requests: int
    seconds: int
    keepalive: bool
    timeout_s: int = 10
    expect_body: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What one run of a tool came to, by its own account.

    ``ok`` are complete replies with a status of 2xx (3xx, where a tool counts those together).
    ``stated_rps`` is the rate as the tool prints it, which may count failures as well. Latencies
    are steps of ``latency_step_ms``: a tool that rounds to 1 ms cannot tell 0.6 from 1.4.
    """

    ok: int
    elapsed_s: float
    stated_rps: float
    errors: dict[str, int] = field(default_factory=dict)
    failed: int = 0  # requests: one may stand under several kinds in ``errors``
    mean_ms: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    latency_step_ms: float | None = None
    in_flight: float | None = None  # measured by the tool, where it does
    # WebSocket batches: seconds by phase, how many batches, and what befell sockets.
    phases_s: dict[str, float] = field(default_factory=dict)
    batches: int | None = None
    socket_errors: dict[str, int] = field(default_factory=dict)

    @property
    def kinds(self) -> Counter[str]:
        """Everything that went wrong, by kind: of requests and of sockets."""
        return Counter(self.errors) + Counter(self.socket_errors)


@dataclass(frozen=True)
class Tool:
    """A load generator. ``result_file`` is what it writes into its folder, else it prints.

    ``counts_requests`` is False where a run is bounded by time alone. ``habits`` are facts that a
    reader needs beside its figures.
    """

    name: str
    install: str
    find: Callable[[], tuple[str, ...] | None]  # the beginning of its command line
    command: Callable[[Job], tuple[str, ...]]  # the rest of it
    parsed: Callable[[str, Job], Outcome]  # raises ``Unreadable``
    counts_requests: bool = True
    compares_bodies: bool = False
    result_file: str | None = None
    habits: tuple[str, ...] = ()


def on_path(program: str) -> Callable[[], tuple[str, ...] | None]:
    """Return what finds ``program`` among the installed ones."""

    def find() -> tuple[str, ...] | None:
        return (program,) if shutil.which(program) else None

    return find


def present(kinds: Mapping[str, int]) -> dict[str, int]:
    """Return the kinds that happened."""
    return {kind: count for kind, count in kinds.items() if count}
