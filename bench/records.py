"""What one measurement leaves behind, as frozen dataclasses that go to JSON and back.

The load driver writes a ``Load`` (it knows nothing of this module: its JSON is the contract); the
runner wraps it with what it saw of the server and the machine into a ``Sample``. A value that was
not measured is ``None``, never 0.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import BadInput

SCHEMA = 1


@dataclass(frozen=True)
class Bucket:
    """One second of a run, by the time the request was meant to be sent."""

    start_s: float
    sent: int
    ok: int
    error: int
    timeout: int
    dropped: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True)
class Step:
    """One setting that the search for the highest throughput tried, and how it went."""

    start_s: float
    duration_s: float
    concurrency: int | None  # closed-loop steps
    rate_rps: float | None  # open-loop steps
    ok: int
    failed: int  # error + timeout + dropped
    ok_rps: float
    p50_ms: float | None
    p99_ms: float | None
    held: bool | None  # None: a step of the climb, which is not a verdict


@dataclass(frozen=True)
class Load:
    """What the load driver saw.

    ``sent = ok + error + timeout``; ``scheduled = sent + dropped`` where arrivals are scheduled
    (open loop): ``dropped`` never left, because too many were in flight. Histograms are
    HdrHistogram V2 payloads, base64, in microseconds.
    """

    test: str  # latency, throughput, echo
    mode: str  # open, closed, autothrottle
    transport: str  # http, websocket
    url: str
    connection: str  # close, keepalive
    rate_rps: float | None  # open loop
    concurrency: int | None  # closed loop
    duration_s: float  # as asked for
    elapsed_s: float  # first intended send to last reply
    scheduled: int
    sent: int
    ok: int
    error: int
    timeout: int
    dropped: int
    error_kinds: dict[str, int]  # such as {"status 503": 4, "refused": 1, "wrong body": 1}
    latency_us: str  # of the successes, from the intended send
    error_latency_us: str
    lag_us: str  # actual send minus intended send; empty histogram in a closed loop
    inflight_mean: float  # time-weighted, for Little's law
    buckets: tuple[Bucket, ...]
    steps: tuple[Step, ...] = ()
    held_rps: float | None = None  # the bracket: the highest rate that held ...
    failed_rps: float | None = None  # ... and the lowest that did not
    warnings: tuple[str, ...] = ()
    timeout_s: float | None = None  # how long a request was waited for
    started_monotonic_s: float | None = None  # CLOCK_MONOTONIC at the first intended send that
    # counts: the runner's CPU figures are cut to this window, so that warm-up stays out of them
    counters: dict[str, int] = field(default_factory=dict)  # WebSockets by what became of them:
    # good, incomplete, corrupt, out_of_order, failed
    unasked: int | None = None  # WebSocket: replies that came while nothing was under way
    connect_us: str | None = None  # WebSocket: the histogram of the times they took to open
    realtime: bool | None = None  # whether the generator ran at real-time priority
    # A batch of sockets, or several one after another: "whole", and where they were timed apart
    # "opening", "sending" and "closing"; and what befell sockets, such as {"opening: refused": 2}.
    batches: int | None = None
    phases_s: dict[str, float] = field(default_factory=dict)
    socket_errors: dict[str, int] = field(default_factory=dict)
    schema: int = SCHEMA


@dataclass(frozen=True)
class Usage:
    """What one process tree used while a test ran."""

    cpu_user_s: float
    cpu_system_s: float
    cpu_max_cores: float  # the busiest sampling interval
    pss_max_bytes: int | None
    rss_max_bytes: int | None
    processes_max: int
    cpu_busiest_process_cores: float | None = None  # of the one process that used most

    @property
    def cpu_s(self) -> float:
        return self.cpu_user_s + self.cpu_system_s


@dataclass(frozen=True)
class Machine:
    """The rest of the machine during the test, in cores (1.0 is one core busy all the time)."""

    wall_s: float
    busy_cores: float
    foreign_cores: float  # busy, and neither ours nor the server's
    steal_cores: float


@dataclass(frozen=True)
class Gate:
    """One condition on a sample. ``measured`` is None where it does not apply.

    A sample that misses one does not count, unless the gate is ``advisory``: that one decides
    only what the figure may be called (a throughput is a *capacity* only of a busy server).
    """

    name: str
    ok: bool
    measured: float | None
    limit: float | None
    unit: str
    reason: str  # a sentence for a person, empty where ok
    advisory: bool = False


def missed(gates: Iterable[Gate]) -> list[Gate]:
    """Return those of ``gates`` that keep a measurement from counting."""
    return [gate for gate in gates if not (gate.ok or gate.advisory)]


@dataclass(frozen=True)
class Sample:
    """One variant, one test, one round, one attempt.

    ``arm`` tells the two halves of an A/A pair apart: ``gunicorn`` and ``gunicorn (again)`` are
    the same variant. ``failure`` is set where nothing could be measured, with the end of the log.
    """

    campaign: str
    arm: str
    variant: str
    test: str  # latency, throughput, relay, echo, ...
    round: int
    attempt: int
    started: str  # ISO 8601, UTC
    load: Load | None
    server: Usage | None
    generator: Usage | None
    machine: Machine | None
    identity: dict[str, Any] = field(default_factory=dict)  # what /healthz said
    gates: tuple[Gate, ...] = ()
    failure: str | None = None
    log_tail: str | None = None
    command: tuple[str, ...] = ()  # the generator's command line, paths relative to the project
    schema: int = SCHEMA

    @property
    def valid(self) -> bool:
        return self.failure is None and not missed(self.gates)

    @property
    def file_name(self) -> str:
        arm = self.arm.replace(" ", "_").replace("(", "").replace(")", "")
        return f"{self.round:02d}-{self.test}-{arm}-{self.attempt}.json"


@dataclass(frozen=True)
class Campaign:
    """What a campaign set out to do, and on what: ``campaign.json`` beside its ``raw/`` samples."""

    name: str
    kind: str  # quick: medians and ranges; full: intervals
    started: str  # ISO 8601, UTC
    finished: str | None  # None: it was interrupted, or still runs
    rounds: int
    control: str  # the arm every ratio is taken to
    twin: str | None  # the arm that is the control again: the A/A pair
    arms: dict[str, dict[str, str | int]]  # arm -> the factors of its variant
    tests: tuple[str, ...]
    configurations: dict[str, dict[str, str]]  # variant -> file name -> its text, values filled in
    provenance: dict[str, Any]  # versions, commit, CPU, kernel, sysctls, limits, pinning, command
    fewer_rounds: dict[str, int] = field(default_factory=dict)  # test -> its rounds, where fewer
    seconds: dict[str, float] = field(default_factory=dict)  # test -> how long it is measured
    resumed: tuple[str, ...] = ()  # when, and from which round on, it was gone on with
    schema: int = SCHEMA

    def rounds_of(self, test: str) -> int:
        """Return in how many rounds, from the first on, ``test`` was to be measured."""
        return min(self.rounds, self.fewer_rounds.get(test, self.rounds))


def load_from(data: dict[str, Any]) -> Load:
    """Return the ``Load`` in the driver's JSON ``data``; raise ``TypeError`` if it is not one."""
    return Load(
        **{
            **data,
            "buckets": tuple(Bucket(**bucket) for bucket in data["buckets"]),
            "steps": tuple(Step(**step) for step in data.get("steps", ())),
            "warnings": tuple(data.get("warnings", ())),
        }
    )


def sample_from(data: dict[str, Any]) -> Sample:
    """Return the ``Sample`` in ``data``, which is a ``Sample`` gone through JSON."""
    return Sample(
        **{
            **data,
            "load": load_from(data["load"]) if data["load"] else None,
            "server": Usage(**data["server"]) if data["server"] else None,
            "generator": Usage(**data["generator"]) if data["generator"] else None,
            "machine": Machine(**data["machine"]) if data["machine"] else None,
            "gates": tuple(Gate(**gate) for gate in data["gates"]),
            "command": tuple(data["command"]),
        }
    )


def write(sample: Sample, folder: Path) -> Path:
    """Write ``sample`` into ``folder`` in one step: a reader never sees half a file."""
    return write_json(asdict(sample), folder / sample.file_name)


def write_json(data: dict[str, Any], path: Path) -> Path:
    """Write ``data`` to ``path`` in one step: a reader never sees half a file."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(data, indent=1) + "\n")
    partial.replace(path)
    return path


def read(folder: Path) -> list[Sample]:
    """Return every sample in ``folder``, in the order of their names."""
    return [sample_from(json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def write_campaign(campaign: Campaign, folder: Path) -> Path:
    """Write ``campaign.json`` into the campaign's ``folder``."""
    path = folder / "campaign.json"
    path.write_text(json.dumps(asdict(campaign), indent=1) + "\n")
    return path


def read_campaign(folder: Path) -> Campaign:
    """Return the campaign in ``folder``; raise ``BadInput`` where the folder holds none."""
    path = folder / "campaign.json"
    if not path.is_file():
        raise BadInput(f"{folder} is not a results folder: it has no campaign.json")
    data = json.loads(path.read_text())
    tuples = {"tests": tuple(data["tests"]), "resumed": tuple(data.get("resumed", ()))}
    return Campaign(**{**data, **tuples})
