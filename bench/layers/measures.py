"""What is measured: each measure with its figures and the peers it is for."""

from dataclasses import dataclass, field
from typing import Any

from bench.errors import unknown
from bench.layers.peers import AGAIN, CHANNELS_4, ON_A_SOCKET
from bench.layers.placement import ANYWHERE, APART, BESIDE, TOGETHER

RATE_RPS = 300
MEMBERS = (100, 1000)
PROCESSES = (1, 2, 4)
OUTSTANDING = 32
CAPACITY = 1000
WINDOW = 900  # messages under way at most: below the capacity, so that no sender is held back
GROUP_WINDOW = 16  # the same for groups: messages to all of a group
TURNS = 8  # of two processes beside a third: half of them while that one uses the layer
LOT = 100  # messages that one acknowledgement stands for


@dataclass(frozen=True)
class Measure:
    """``figure`` is the one that ratios are taken of; ``unit`` is its unit.

    A measure is as long as it takes for the median of ten rounds to hold still: percentiles of few
    messages a second take longer than rates.
    """

    name: str
    title: str
    figure: str
    unit: str
    higher_is_better: bool
    peers: tuple[str, ...]
    roles: tuple[str, ...]  # functions of bench.layers, a process each
    placement: str
    duration_s: float
    quick_s: float
    settings: dict[str, Any] = field(default_factory=dict)  # of the layer, beside its places
    options: dict[str, Any] = field(default_factory=dict)  # of the roles
    loop: str = "asyncio"
    counts_cpu: bool = True  # whether processor time per message means something
    times: int = 1  # how often ``duration_s`` is measured in one cell


def _round_trip(name: str, title: str, **more: Any) -> Measure:
    peers, roles = ("ipc", AGAIN, "raw"), ("roles.ping", "roles.echo")
    return Measure(name, title, "p50_us", "µs", False, peers, roles, TOGETHER, 0.8, 0.5, **more)


def _paced(name: str, title: str, placement: str) -> Measure:
    return Measure(
        name,
        title,
        "p50_us",
        "µs",
        False,
        (*CHANNELS_4, AGAIN, "raw"),
        ("paced.paced", "roles.echo"),
        placement,
        3.0,
        1.0,
        counts_cpu=False,  # the timer's and the wake-ups' would be more than the layer's
        options={"interval_s": round(1 / RATE_RPS, 6)},
    )


def _group(members: int, processes: int) -> Measure:
    alone = processes == 1
    return Measure(
        f"group_{members}_x{processes}",
        f"group_send to {members:,} channels in {processes} process{'es' * (not alone)}",
        "deliveries_per_s",
        "deliveries/s",
        True,
        (*ON_A_SOCKET, "inmemory") if alone else ON_A_SOCKET,
        ("groups.group_alone",)
        if alone
        else ("groups.group_sender", *["groups.group_member"] * processes),
        APART if alone else ANYWHERE,
        1.0,
        0.7,
        options={
            "members": members // processes,
            "processes": processes,
            "window": GROUP_WINDOW,
        },
    )


MEASURES = {
    measure.name: measure
    for measure in (
        # To wake a processor that sleeps takes a hypervisor as long as a fast layer's round trip.
        _paced("round_trip_300", f"round trip at {RATE_RPS}/s, a processor for each end", APART),
        _paced("round_trip_300_shared", f"round trip at {RATE_RPS}/s, one processor", TOGETHER),
        _round_trip("round_trip", "round trip back to back, asyncio"),
        _round_trip("round_trip_uvloop", "round trip back to back, uvloop", loop="uvloop"),
        Measure(
            "one_way",
            "one way to one named channel",
            "messages_per_s",
            "messages/s",
            True,
            (*CHANNELS_4, AGAIN),
            ("roles.one_way_reader", "roles.one_way_writer"),
            APART,
            1.2,
            0.7,
            settings={"capacity": CAPACITY},
            options={"window": WINDOW, "lot": LOT},
        ),
        *(_group(members, processes) for members in MEMBERS for processes in PROCESSES),
        Measure(
            "outstanding_32",
            f"{OUTSTANDING} requests outstanding through one worker",
            "requests_per_s",
            "requests/s",
            True,
            (*ON_A_SOCKET, AGAIN, "asgi_ipc"),
            ("roles.requester", "roles.worker"),
            APART,
            1.2,
            0.7,
            options={"outstanding": OUTSTANDING},
        ),
        Measure(
            "idle",
            "CPU of a process that waits in receive()",
            "cpu_us_per_s",
            "µs/s",
            False,
            ON_A_SOCKET,
            ("roles.watch", "roles.idle"),
            APART,
            2.0,
            1.0,
        ),
        Measure(
            "interference",
            "p99 of two processes while a third with two busy threads uses the layer, "
            "over while it is as busy and does not",
            "p99_ratio",
            "x",
            False,
            ON_A_SOCKET,
            ("paced.interfered", "roles.echo", "paced.busy"),
            BESIDE,
            1.75,
            0.25,
            counts_cpu=False,
            times=TURNS,
            options={"interval_s": round(1 / RATE_RPS, 6), "turns": TURNS},
        ),
    )
}


def resolve(name: str) -> Measure:
    """Return the measure called ``name``; raise ``BadInput`` that names the nearest ones."""
    if name not in MEASURES:
        raise unknown("measure", name, MEASURES)
    return MEASURES[name]
