"""Measures one cell: a deployment, its subscribers, a feed, and what became of every message."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

import psutil
from hdrh.histogram import HdrHistogram

from bench import gates, sample, supervise
from bench.errors import BadInput
from bench.fanout.cells import Cell
from bench.fanout.outcome import Outcome, described
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
from bench.fanout.stages import HUB, SUBSCRIBERS, stages
from bench.provenance import Pinning
from bench.records import Gate
from bench.supervise import Deployment


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
            began_s = time.monotonic()
            feed = published(cell, pinned, deployment)
            generator.say({"published": per_topic(cell, feed["publishers"])})
            report = generator.heard(AFTER_S + cell.seconds)
    hub_after = hub_counters(deployment)
    start_s = min((part["began_monotonic_s"] for part in feed["publishers"]), default=began_s)
    known = {
        **described(cell, number),
        "ramp": tuple(ready["ramp"]),
        "rss_idle_bytes": idle,
        "rss_subscribed_bytes": subscribed,
    }
    window = (start_s, report["at_monotonic_s"])
    return judged(known, cell, feed, report, sampler, window, pinned, (hub_before, hub_after))


def judged(
    known: dict[str, Any],
    cell: Cell,
    feed: Mapping[str, Any],
    report: Mapping[str, Any],
    sampler: sample.Sampler,
    window: tuple[float, float],
    pinned: Pinning,
    hubs: tuple[dict[str, int | None] | None, dict[str, int | None] | None],
) -> Outcome:
    """Put together what publisher, subscribers, server and machine have to say."""
    server = sample.usage(sampler.snapshots, attrgetter("server"), *window, sampler.pss_bytes)
    generator = sample.usage(sampler.snapshots, attrgetter("generator"), *window)
    machine = sample.machine(sampler.snapshots, *window)
    counts = counts_of(report)
    cpu_s = server.cpu_s
    unique = counts["received"] - counts["duplicated"]
    latency = HdrHistogram.decode(report["latency_us"].encode())
    percentiles: dict[str, Any] = {
        f"p{percent}_ms": latency.get_value_at_percentile(percent) / 1000 if unique else None
        for percent in (50, 95, 99)
    }
    all_unique = unique + report["churned"]["received"]
    rates: dict[str, Any] = {}
    if all_unique:  # nothing is published to sockets that only wait
        rates = {
            "deliveries_per_s": all_unique / feed["seconds"],
            "deliveries_per_server_cpu_s": all_unique / cpu_s if cpu_s else None,
            "bytes_per_s": counts["size_bytes"] / feed["seconds"],
            "latency_us": report["latency_us"],
        }
    outcome = Outcome(
        **known,
        **percentiles,
        **rates,
        published=feed["published"],
        publish_s=feed["seconds"],
        publisher=publishers_sum(feed["publishers"]),
        wanted=wanted_messages(cell, feed["publishers"]),
        expected=expected_deliveries(cell, feed["publishers"]),
        counts=counts,
        churned=report["churned"],
        hub=difference(*hubs) if cell.variant.processes == 1 else None,
        server=server,
        generator=generator,
        machine=machine,
    )
    return replace(outcome, gates=tuple(checks(outcome)))


def checks(one: Outcome) -> Iterator[Gate]:
    """Yield what must hold for the figures to mean anything. A loss is a result, and no gate."""
    counts = one.counts
    found = {stage.name: stage for stage in stages(one)}
    yield none_of("accounting", found[SUBSCRIBERS].off, "records", "were astray")
    if HUB in found:
        # A poll that fell behind is given again what its outbox had dropped.
        advisory = one.transport == "polling"
        gate = none_of("hub's sums", found[HUB].off, "records", "went in and not out")
        yield replace(gate, advisory=advisory)
    nothing = one.expected > 0 and not counts["received"]
    yield none_of("something came", int(nothing), "cells", "got nothing at all")
    wrong = counts["corrupt"] + counts["foreign"]
    yield none_of("wrong records", wrong, "records", "were corrupt or not asked for")
    yield none_of("refused", counts["refused"], "clients", "were refused")
    yield none_of("closed", counts["closed"], "clients", "were closed before the end")
    assert one.generator is not None
    assert one.machine is not None
    yield gates.generator_cpu(one.generator, one.machine)
    yield gates.foreign_cpu(one.machine)
    yield gates.steal(one.machine, psutil.cpu_count() or 1)


def none_of(name: str, number: int, unit: str, what: str) -> Gate:
    """Return the gate that ``number`` of ``unit`` misses unless it is 0."""
    return Gate(name, not number, number, 0, unit, f"{number:,} {unit} {what}" if number else "")


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


def publishers_sum(parts: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return what they did in all; of what one of them did not count there is no sum."""
    names = ("cpu_s", "waited_s", "given_up", "layer_dropped")
    return {
        name: None
        if any(part[name] is None for part in parts)
        else sum(part[name] for part in parts)
        for name in names
    }


def difference(
    before: Mapping[str, int | None] | None, after: Mapping[str, int | None] | None
) -> dict[str, int | None] | None:
    """Return by how much each of a hub's counters grew; None where there is no hub."""
    if after is None:
        return None
    return {
        name: None if value is None else value - ((before or {}).get(name) or 0)
        for name, value in after.items()
    }


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
    counts = per_topic(cell, publishers)
    return sum(counts[name] * users for name, users in _subscribers(cell).items())


def wanted_messages(cell: Cell, publishers: Sequence[Mapping[str, int]]) -> int:
    """Return how many messages had a topic that somebody who stays subscribed to."""
    counts = per_topic(cell, publishers)
    return sum(counts[name] for name in _subscribers(cell))


@lru_cache(maxsize=1)  # a million draws in the largest cells, and each outcome asks twice
def _subscribers(cell: Cell) -> Counter[str]:
    """Return how many of the users who stay subscribe to each topic that has one."""
    return spec(cell, "").subscribers()
