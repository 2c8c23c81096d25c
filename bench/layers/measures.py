"""What is measured: each measure with its figures and the peers it is for."""

from dataclasses import dataclass, field
from typing import Any

from bench.errors import unknown
from bench.layers.peers import ACROSS, CHANNELS_4

RATE_RPS = 300
MEMBERS = (100, 1000)
PROCESSES = (1, 2, 4)
OUTSTANDING = 32


@dataclass(frozen=True)
class Measure:
    """``figure`` is the one that ratios are taken of; ``unit`` is its unit."""

    name: str
    title: str
    figure: str
    unit: str
    higher_is_better: bool
    peers: tuple[str, ...]
    roles: tuple[str, ...]  # functions of bench.layers, a process each
    settings: dict[str, Any] = field(default_factory=dict)  # of the layer, beside its places
    options: dict[str, Any] = field(default_factory=dict)  # of the roles
    loop: str = "asyncio"
    counts_cpu: bool = True  # whether processor time per message means something


def _round_trip(name: str, title: str, role: str, **more: Any) -> Measure:
    peers = CHANNELS_4 if role == "paced" else (*CHANNELS_4, "raw")
    roles = (f"roles.{role}", "roles.echo")
    return Measure(name, title, "p50_us", "µs", False, peers, roles, **more)


def _group(members: int, processes: int) -> Measure:
    alone = processes == 1
    return Measure(
        f"group_{members}_x{processes}",
        f"group_send to {members:,} channels in {processes} process{'es' * (not alone)}",
        "deliveries_per_s",
        "deliveries/s",
        True,
        CHANNELS_4 if alone else ACROSS,
        ("groups.group_alone",)
        if alone
        else ("groups.group_sender", *["groups.group_member"] * processes),
        options={"members": members // processes, "processes": processes},
    )


MEASURES = {
    measure.name: measure
    for measure in (
        _round_trip(
            "round_trip_300",
            f"round trip at {RATE_RPS}/s, open loop",
            "paced",
            options={"interval_s": round(1 / RATE_RPS, 6)},
        ),
        _round_trip("round_trip", "round trip back to back, asyncio", "ping"),
        _round_trip("round_trip_uvloop", "round trip back to back, uvloop", "ping", loop="uvloop"),
        Measure(
            "one_way",
            "one way to one named channel",
            "messages_per_s",
            "messages/s",
            True,
            CHANNELS_4,
            ("roles.one_way_reader", "roles.one_way_writer"),
            settings={"capacity": 1000},
        ),
        *(_group(members, processes) for members in MEMBERS for processes in PROCESSES),
        Measure(
            "outstanding_32",
            f"{OUTSTANDING} requests outstanding through one worker",
            "requests_per_s",
            "requests/s",
            True,
            (*CHANNELS_4, "asgi_ipc"),
            ("roles.requester", "roles.worker"),
            options={"outstanding": OUTSTANDING},
        ),
        Measure(
            "idle",
            "CPU of a process that waits in receive()",
            "cpu_us_per_s",
            "µs/s",
            False,
            ACROSS,
            ("roles.watch", "roles.idle"),
        ),
        Measure(
            "interference",
            "p99 of two processes while a third with two busy threads uses the layer, "
            "over while it is as busy and does not",
            "p99_ratio",
            "x",
            False,
            ACROSS,
            ("roles.interfered", "roles.echo", "roles.busy"),
            counts_cpu=False,
            options={"interval_s": round(1 / RATE_RPS, 6)},
        ),
    )
}


def resolve(name: str) -> Measure:
    """Return the measure called ``name``; raise ``BadInput`` that names the nearest ones."""
    if name not in MEASURES:
        raise unknown("measure", name, MEASURES)
    return MEASURES[name]
