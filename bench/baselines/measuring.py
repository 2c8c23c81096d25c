"""Puts a generator on a row, samples meanwhile, and asks the gates."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

import psutil

from bench import gates, sample
from bench.baselines import serving
from bench.baselines.generators import Count, Generator, Unreadable
from bench.baselines.results import Cell
from bench.baselines.row import Row
from bench.baselines.serving import Served
from bench.environment import HOST
from bench.load import pinned as on_cpus
from bench.provenance import Pinning
from bench.readiness import NotReady, Wrong
from bench.records import Gate, Machine, Usage

_WARM_UP_S = 1
_SPARE_S = 15.0  # what a generator may take beyond its time
_NETSTAT = Path("/proc/net/netstat")
_SOURCES = 200  # addresses of loopback to connect from, each with its own 28,000 ports
SIZE_SHARE = 0.001
ENOUGH = 100


@dataclass(frozen=True)
class Seen:
    """What was measured around one run of a generator."""

    count: Count
    server: Usage
    driver: Usage
    machine: Machine
    overflows: int


def server_cpus(pinned: Pinning, wanted: int) -> tuple[int, ...] | None:
    """Return the processors for a site that wants so many; None for all.

    Where all but the generator's are too few, a site of several shares that one, too.
    """
    if pinned.server is None:
        return None
    if len(pinned.server) >= wanted:
        return pinned.server[:wanted]
    return tuple(sorted(os.sched_getaffinity(0) | set(pinned.server)))


def measured(
    cell: Cell, row: Row, served: Served, generator: Generator, seconds: int, pinned: Pinning
) -> Cell:
    """Return ``cell`` with what was measured, or with the reason why nothing could be."""
    try:
        reply = serving.check(row.port, row.path)
        if cell.attempt == 1:
            _warm_up(generator, row, pinned, cell)
        seen = _load(generator, row, seconds, served.pid, pinned, cell)
    except (NotReady, Wrong, Unreadable, sample.TooShort, subprocess.TimeoutExpired) as error:
        return replace(cell, failure=str(error) or type(error).__name__)
    cores = len(server_cpus(pinned, served.site.cpus) or os.sched_getaffinity(0))
    return replace(
        cell,
        count=seen.count,
        server=seen.server,
        driver=seen.driver,
        machine=seen.machine,
        gates=tuple(_gates(seen, reply.size_bytes, row, cores)),
        command=generator.command(_url(row), row.clients, seconds, _source(cell)),
    )


def _url(row: Row) -> str:
    return f"http://{HOST}:{row.port}{row.path}"


def _source(cell: Cell) -> str:
    """Return another loopback address than that of the runs before."""
    number = hash((cell.row, cell.round, cell.attempt)) % _SOURCES
    return f"127.0.1.{number + 1}"


def _warm_up(generator: Generator, row: Row, pinned: Pinning, cell: Cell) -> None:
    command = generator.command(_url(row), row.clients, _WARM_UP_S, _source(cell))
    subprocess.run(
        on_cpus(command, pinned.generator),
        check=False,  # what is wrong will show in the measurement
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_WARM_UP_S + _SPARE_S,
    )


def _load(
    generator: Generator, row: Row, seconds: int, server: int, pinned: Pinning, cell: Cell
) -> Seen:
    command = generator.command(_url(row), row.clients, seconds, _source(cell))
    dropped = listen_overflows()
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(
            on_cpus(command, pinned.generator),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
        try:
            with sample.Sampler(server, process.pid) as sampler:
                start_s = time.monotonic()
                process.wait(timeout=seconds + _SPARE_S)
                end_s = time.monotonic()
        finally:
            process.kill()
            process.wait()
        printed.seek(0)
        count = generator.parsed(printed.read())
    return Seen(
        count=count,
        server=sample.usage(sampler.snapshots, attrgetter("server"), start_s, end_s),
        driver=sample.usage(sampler.snapshots, attrgetter("generator"), start_s, end_s),
        machine=sample.machine(sampler.snapshots, start_s, end_s),
        overflows=listen_overflows() - dropped,
    )


def listen_overflows() -> int:
    """Return how many TCP connections this machine has dropped because a backlog was full."""
    lines = [line.split() for line in _NETSTAT.read_text().splitlines()]
    names, numbers = next(
        (names, numbers)
        for names, numbers in zip(lines[::2], lines[1::2], strict=True)
        if names[0] == "TcpExt:"
    )
    return int(dict(zip(names, numbers, strict=True))["ListenOverflows"])


def _gates(seen: Seen, size_bytes: int, row: Row, cores: int) -> Iterator[Gate]:
    count = seen.count
    yield failures(count)
    yield enough(count, row.clients)
    if count.received_bytes is not None:
        yield replies(count, size_bytes, row.clients)
    yield _at_most(
        "dropped connections",
        seen.overflows,
        0,
        "connections",
        f"{seen.overflows} connections did not fit into a backlog",
    )
    # On a few processors no generator outruns nginx alone: its rate is then a lower bound.
    busy = gates.generator_cpu(seen.driver, seen.machine)
    yield replace(busy, advisory=row.table == "concurrency")
    yield gates.foreign_cpu(seen.machine)
    yield gates.steal(seen.machine, psutil.cpu_count() or 1)
    yield gates.capacity(seen.server, seen.machine, cores)


def failures(count: Count) -> Gate:
    """Hardly any request failed, or hung for longer than the generator waits."""
    share = count.failed / max(count.requests, 1)
    reason = f"{count.failed} of {count.requests} requests failed"
    return _at_most("failures", 100 * share, 100 * gates.FAILED_SHARE, "%", reason)


def enough(count: Count, clients: int) -> Gate:
    """There are so many replies that those still on their way at the end do not matter."""
    least = max(ENOUGH, 2 * clients)
    reason = f"{count.ok} replies are too few to report from: measure longer"
    ok = count.ok >= least
    return Gate("enough replies", ok, count.ok, least, "replies", "" if ok else reason)


def replies(count: Count, size_bytes: int, clients: int) -> Gate:
    """Every reply was as long as the one that was checked; the last ones may be cut off."""
    assert count.received_bytes is not None
    expected = count.requests * size_bytes
    slack = expected * SIZE_SHARE + clients * size_bytes
    off = abs(count.received_bytes - expected)
    reason = f"{count.received_bytes} bytes came where {expected} should have: wrong replies"
    return _at_most("wrong replies", off, slack, "bytes", reason)


def _at_most(name: str, value: float, limit: float, unit: str, reason: str) -> Gate:
    ok = value <= limit
    return Gate(name, ok, value, limit, unit, "" if ok else reason)
