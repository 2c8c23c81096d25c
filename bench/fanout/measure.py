"""Measures one cell: a deployment, its subscribers, a feed, and what became of every message."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import psutil
from hdrh.histogram import HdrHistogram

from bench import gates, sample, supervise
from bench.errors import BadInput
from bench.fanout.cells import Cell
from bench.fanout.parts import (
    AFTER_S,
    READY_S,
    CellFailed,
    generating,
    hub_counters,
    published,
    servers_rss,
    spec,
)
from bench.fanout.spec import topic
from bench.provenance import Pinning
from bench.records import Gate, Machine, Usage
from bench.supervise import Deployment


@dataclass(frozen=True)
class Outcome:
    """One cell, once. Counts are records; None is what was not measured.

    ``expected = received + lost + missing`` for users that stayed, where nothing is duplicated:
    ``lost`` are holes in front of a record that came, ``missing`` what never came at the end.
    """

    cell: str
    question: str
    arm: str
    round: int
    users: int
    subscriptions: int
    topics: int
    message_bytes: int
    processes: int
    delivery: str
    layer: str
    transport: str
    rate: float | None
    failure: str | None = None
    published: int = 0
    publish_s: float | None = None
    publisher: dict[str, float] = field(default_factory=dict)
    expected: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # see driver/deliveries.py, and missing
    churned: dict[str, int] = field(default_factory=dict)
    hub: dict[str, int] | None = None  # what the server's own hubs counted; of one process only
    deliveries_per_s: float | None = None
    deliveries_per_server_cpu_s: float | None = None
    bytes_per_s: float | None = None
    latency_us: str | None = None  # HdrHistogram V2, base64, from the publisher's clock
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    ramp: tuple[dict[str, float], ...] = ()
    rss_idle_bytes: int | None = None  # of the servers, before anybody is connected ...
    rss_subscribed_bytes: int | None = None  # ... and when all are
    server: Usage | None = None
    generator: Usage | None = None
    machine: Machine | None = None
    gates: tuple[Gate, ...] = ()

    @property
    def valid(self) -> bool:
        return self.failure is None and all(gate.ok or gate.advisory for gate in self.gates)


def described(cell: Cell, number: int) -> dict[str, Any]:
    """Return the part of an outcome that is known before anything is measured."""
    return {
        "cell": cell.name,
        "question": cell.question,
        "arm": cell.arm,
        "round": number,
        "users": cell.users,
        "subscriptions": cell.subscriptions,
        "topics": cell.topics,
        "message_bytes": cell.message_bytes,
        "processes": cell.variant.processes,
        "delivery": cell.variant.delivery,
        "layer": cell.variant.layer,
        "transport": cell.transport,
        "rate": cell.rate,
    }


def measured(cell: Cell, number: int, pinned: Pinning) -> Outcome:
    """Measure ``cell`` once. What goes wrong is in the outcome, and the campaign goes on."""
    try:
        with supervise.deployed(cell.variant, cpus=pinned.server) as deployment:
            return loaded(cell, number, pinned, deployment)
    except (CellFailed, BadInput) as failure:
        return Outcome(**described(cell, number), failure=str(failure))
    except supervise.StartFailed as failure:
        return Outcome(**described(cell, number), failure=f"{failure.reason}\n{failure.log_tail}")


def loaded(cell: Cell, number: int, pinned: Pinning, deployment: Deployment) -> Outcome:
    """Put the load of ``cell`` on a deployment that runs."""
    idle = servers_rss(deployment)
    hub_before = hub_counters(deployment)
    with generating(cell, pinned, deployment) as generator:
        ready = generator.heard(READY_S)
        subscribed = servers_rss(deployment)
        with sample.Sampler(deployment.pid, generator.pid) as sampler:
            feed = published(cell, pinned, deployment)
            generator.say({"published": per_topic(cell, feed["publishers"])})
            report = generator.heard(AFTER_S + cell.seconds)
    hub_after = hub_counters(deployment)
    start_s = min((part["began_monotonic_s"] for part in feed["publishers"]), default=None)
    known = {
        **described(cell, number),
        "ramp": tuple(ready["ramp"]),
        "rss_idle_bytes": idle,
        "rss_subscribed_bytes": subscribed,
    }
    if start_s is None:  # nothing is published to sockets that only wait
        return Outcome(**known, counts=counts_of(report))
    window = (start_s, report["at_monotonic_s"])
    return judged(known, cell, feed, report, sampler, window, pinned, (hub_before, hub_after))


def judged(
    known: Mapping[str, Any],
    cell: Cell,
    feed: Mapping[str, Any],
    report: Mapping[str, Any],
    sampler: sample.Sampler,
    window: tuple[float, float],
    pinned: Pinning,
    hubs: tuple[dict[str, int] | None, dict[str, int] | None],
) -> Outcome:
    """Put together what publisher, subscribers, server and machine have to say."""
    server = sample.usage(sampler.snapshots, attrgetter("server"), *window, sampler.pss_bytes)
    generator = sample.usage(sampler.snapshots, attrgetter("generator"), *window)
    machine = sample.machine(sampler.snapshots, *window)
    counts = counts_of(report)
    expected = expected_deliveries(cell, feed["publishers"])
    cpu_s = server.cpu_user_s + server.cpu_system_s
    unique = counts["received"] - counts["duplicated"]
    latency = HdrHistogram.decode(report["latency_us"].encode())
    percentiles: dict[str, Any] = {
        f"p{percent}_ms": latency.get_value_at_percentile(percent) / 1000 if unique else None
        for percent in (50, 95, 99)
    }
    all_unique = unique + report["churned"]["received"]
    return Outcome(
        **known,
        **percentiles,
        published=feed["published"],
        publish_s=feed["seconds"],
        publisher=publishers_sum(feed["publishers"]),
        expected=expected,
        counts=counts,
        churned=report["churned"],
        hub=difference(*hubs) if cell.variant.processes == 1 else None,
        deliveries_per_s=all_unique / feed["seconds"],
        deliveries_per_server_cpu_s=all_unique / cpu_s if cpu_s else None,
        bytes_per_s=counts["size_bytes"] / feed["seconds"],
        latency_us=report["latency_us"],
        server=server,
        generator=generator,
        machine=machine,
        gates=tuple(checks(expected, counts, generator, machine)),
    )


def checks(
    expected: int, counts: Mapping[str, int], generator: Usage, machine: Machine
) -> Iterator[Gate]:
    """Yield what must hold for the figures to mean anything. A loss is a result, and no gate."""
    told = counts["received"] - counts["duplicated"] + counts["lost"] + counts["missing"]
    off = abs(expected - told) if not counts["closed"] else 0
    yield Gate("accounting", off == 0, off, 0, "records", "" if off == 0 else "records astray")
    wrong = counts["corrupt"] + counts["foreign"]
    yield Gate("wrong records", wrong == 0, wrong, 0, "records", "" if not wrong else "corrupt")
    refused = counts["refused"]
    yield Gate("refused", refused == 0, refused, 0, "sockets", "" if not refused else "refused")
    yield gates.generator_cpu(generator, machine)
    yield gates.foreign_cpu(machine)
    yield gates.steal(machine, psutil.cpu_count() or 1)


COUNTS = (
    "frames",
    "received",
    "size_bytes",
    "lost",
    "missing",
    "duplicated",
    "reordered",
    "corrupt",
    "foreign",
    "refused",
    "closed",
    "gaps",
    "users",
)


def counts_of(report: Mapping[str, Any]) -> dict[str, int]:
    return {name: report[name] for name in COUNTS}


def publishers_sum(parts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    names = ("cpu_s", "waited_s", "given_up")
    return {name: sum(part[name] for part in parts) for name in names}


def difference(
    before: Mapping[str, int] | None, after: Mapping[str, int] | None
) -> dict[str, int] | None:
    """Return by how much each of a hub's counters grew; None where there is no hub."""
    if after is None:
        return None
    return {name: value - (before or {}).get(name, 0) for name, value in after.items()}


def per_topic(cell: Cell, publishers: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return how many messages each topic got: publishers cycle through their own shares."""
    counts = {topic(number): 0 for number in range(cell.topics)}
    for part in publishers:
        rounds, rest = divmod(part["published"], part["topics"])
        for turn, number in enumerate(range(part["share"], cell.topics, cell.publishers)):
            counts[topic(number)] = rounds + (turn < rest)
    return counts


def expected_deliveries(cell: Cell, publishers: Sequence[Mapping[str, int]]) -> int:
    """Return how many records the users who stay are due, in all."""
    counts, asked = per_topic(cell, publishers), spec(cell, "")
    return sum(counts[name] for user in range(cell.users) for name in asked.topics_of(user))
