"""One measurement: a measure on a peer, in processes of its own."""

import json
import os
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import gates, sample
from bench.layers import placement
from bench.layers.cast import PartFailed, played, started
from bench.layers.measures import Measure
from bench.layers.peers import Peer, Places, config
from bench.provenance import PROJECT, anonymous
from bench.records import Gate

SILENCE_S = 2.0  # how long a message may take before it counts as lost
LAG_SHARE = 0.10
CHANNELS1_PYTHON = PROJECT / ".venv-channels1" / "bin" / "python"
CHANNELS1_MISSING = "no environment with asgi_ipc: make channels1-env"


@dataclass(frozen=True)
class Cell:
    """What one measurement found. ``failure`` says why there is nothing.

    ``discarded`` says why the figures do not count: the machine was not ours, or our own clock was
    late. They are kept for all to see.
    """

    measure: str
    peer: str
    round: int
    figures: dict[str, float | None] = field(default_factory=dict)
    sent: int | None = None
    received: int | None = None
    lost: int | None = None
    duplicates: int | None = None
    cpu_us_per_message: float | None = None  # every process, redis-server included
    failure: str | None = None
    discarded: tuple[str, ...] = ()
    attempt: int = 1

    @property
    def counts(self) -> bool:
        return self.failure is None and not self.discarded


@dataclass(frozen=True)
class Stage:
    """Where cells are measured: the places of the layers, and the processors."""

    places: Places
    redis_pid: int | None
    cpus: tuple[int, ...] = field(default_factory=placement.usable)


def measured(measure: Measure, peer: Peer, stage: Stage, duration_s: float, number: int) -> Cell:
    """Measure once. A failure is a result, too: it is written down, and the run goes on."""
    if peer.name == "asgi_ipc" and not CHANNELS1_PYTHON.exists():
        return Cell(measure.name, peer.name, number, failure=CHANNELS1_MISSING)
    run, redis_pid = secrets.token_hex(4), stage.redis_pid if peer.transport else None
    if redis_pid:
        placement.confine(redis_pid, placement.server(measure.placement, stage.cpus))
    # Two looks and no thread between them: nothing of ours runs while the layer is timed.
    sampler = sample.Sampler(redis_pid or os.getpid(), os.getpid())
    lines = commands(measure, peer, stage, duration_s, run)
    try:
        with started(lines, duration_s) as processes:
            figures, used_s = played(processes, redis_pid, sampler.take)
    except PartFailed as error:
        return Cell(measure.name, peer.name, number, failure=anonymous(str(error).strip()))
    finally:
        remove_segments(run)
    found = figures | {"": [{"discarded": discarded(sampler, figures, len(stage.cpus))}]}
    return cell(measure, peer, number, found, used_s)


def discarded(
    sampler: sample.Sampler, figures: dict[str, list[dict[str, Any]]], cores: int
) -> tuple[str, ...]:
    """Return the reasons why this does not count."""
    before, after = sampler.snapshots
    machine = sample.machine(sampler.snapshots, before.at_s, after.at_s)
    asked = [gates.foreign_cpu(machine), gates.steal(machine, cores)]
    asked += [lag(one) for ones in figures.values() for one in ones if "lag_p50_us" in one]
    return tuple(gate.reason for gate in asked if not gate.ok)


def lag(figures: dict[str, Any]) -> Gate:
    """Ask whether messages left when they were meant to."""
    late_us, limit_us = figures["lag_p50_us"], LAG_SHARE * figures["p50_us"]
    reason = f"messages left {late_us:.0f} us late, of a round trip of {figures['p50_us']:.0f} us"
    ok = late_us <= limit_us
    return Gate("schedule lag", ok, late_us, limit_us, "us", "" if ok else reason)


def remove_segments(run: str) -> None:
    """Remove the shared memory that asgi_ipc never removes itself."""
    for segment in Path("/dev/shm").glob(f"*bench{run}-*"):  # noqa: S108 - where it puts them
        segment.unlink()


def commands(
    measure: Measure, peer: Peer, stage: Stage, duration_s: float, run: str
) -> list[list[str]]:
    """Return the command of each process. A layer within one process gets one for all roles."""
    spec = {
        "backend": peer.backend,
        "config": config(peer, stage.places) | measure.settings,
        "duration_s": duration_s,
        "patience_s": SILENCE_S,
        "options": measure.options | {"folder": str(stage.places.redis_socket.parent)},
        "loop": measure.loop,
        "run": run,
    }
    roles = [role_path(role, peer) for role in measure.roles]
    casts = [[role] for role in roles] if peer.crosses_processes else [roles]
    placed = placement.placed(measure.placement, len(casts), stage.cpus)
    return [
        [*program(peer), json.dumps(spec | {"roles": cast, "cpus": cpus})]
        for cast, cpus in zip(casts, placed, strict=True)
    ]


def role_path(role: str, peer: Peer) -> str:
    """``raw`` plays the ping-pong itself, without a layer."""
    if peer.name == "raw":
        return f"bench.layers.raw.raw_{role.rpartition('.')[2]}"
    return f"bench.layers.{role}"


def program(peer: Peer) -> list[str]:
    if peer.name == "asgi_ipc":
        return [str(CHANNELS1_PYTHON), str(Path(__file__).with_name("asgi_ipc_peer.py"))]
    return [sys.executable, "-m", "bench.layers.part"]


def cell(
    measure: Measure,
    peer: Peer,
    number: int,
    figures: dict[str, list[dict[str, Any]]],
    used_s: float,
) -> Cell:
    """Put together what the processes found: figures of the leading role, counts of all."""
    merged: dict[str, Any] = {}
    for one in (one for ones in figures.values() for one in ones):
        for key, value in one.items():
            merged[key] = merged[key] + value if key in merged else value
    if "deliveries" in merged:
        merged["received"] = merged.pop("deliveries")
    if "sent" in merged:
        merged["lost"] = merged["sent"] - merged["received"]
    counts = {key: merged.pop(key, None) for key in ("sent", "received", "lost", "duplicates")}
    handled = (counts["received"] or 0) + merged.pop("warm_up", 0)
    per_message = 1e6 * used_s / handled if counts["received"] and measure.counts_cpu else None
    reasons = merged.pop("discarded", ())
    return Cell(
        *(measure.name, peer.name, number, merged),
        **counts,
        cpu_us_per_message=per_message,
        discarded=reasons,
    )
