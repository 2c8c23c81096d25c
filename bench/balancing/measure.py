"""One cell by one tool on one site: the tool runs, the sampler watches, the gates judge."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter

import psutil

from bench import gates, sample
from bench.balancing import generator, kernel
from bench.balancing.cells import EchoCell, HttpCell
from bench.balancing.reading import Reading
from bench.balancing.site import Site, page
from bench.campaign import Failed
from bench.load import LoadSpec
from bench.provenance import Pinning, anonymous
from bench.records import Gate, Machine, Usage, missed
from bench.sample import Sampler
from bench.tools import locust
from bench.tools.tool import LIMIT_S, Job, Outcome, Tool, Unreadable

_OF_OTHERS = {"foreign CPU", "steal"}  # gates that may hold at another time
_NOBODY = -1  # no process has this pid: the server is somebody's own


def measured(
    site: Site,
    cell: HttpCell | EchoCell,
    tool: Tool,
    pinned: Pinning,
    blank: Reading,
    rests_s: Sequence[float],
) -> Iterator[Reading]:
    """Yield what came of it, and of more attempts where something else was in the way.

    ``blank`` has the names; before each attempt there is one of the ``rests_s``.
    """
    for attempt, rest_s in enumerate(rests_s, start=1):
        time.sleep(rest_s)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        reading = replace(blank, attempt=attempt, started=started)
        try:
            reading = _attempt(site, cell, tool, pinned, reading)
        except (Failed, Unreadable, sample.TooShort) as failure:
            said = getattr(failure, "log_tail", None)
            tail = "\n".join(part for part in (said, site.log_tail()) if part)
            yield replace(reading, failure=anonymous(str(failure)), log_tail=anonymous(tail))
            return
        yield reading
        if not any(gate.name in _OF_OTHERS for gate in missed(reading.gates)):
            return


def _attempt(
    site: Site, cell: HttpCell | EchoCell, tool: Tool, pinned: Pinning, blank: Reading
) -> Reading:
    job, arguments, limit_s = _asked(site, cell, tool)
    before = kernel.tcp()
    with generator.running(tool, arguments, pinned.generator, limit_s) as running:
        with Sampler(site.pid or _NOBODY, running.pid) as sampler:
            text = running.text()
        try:
            outcome = tool.parsed(text, job)
        except Unreadable as error:
            raise Failed(f"{tool.name}: {error}", running.log_tail()) from error
    tcp = kernel.tcp().since(before)
    start_s, end_s = sampler.snapshots[0].at_s, sampler.snapshots[-1].at_s
    server = sample.usage(
        sampler.snapshots, attrgetter("server"), start_s, end_s, sampler.pss_bytes
    )
    used = sample.usage(sampler.snapshots, attrgetter("generator"), start_s, end_s)
    machine = sample.machine(sampler.snapshots, start_s, end_s)
    return replace(
        blank,
        outcome=outcome,
        server=server if site.pid else None,
        generator=used,
        machine=machine,
        tcp=tcp,
        gates=(
            *_gates(outcome, used, machine, known=site.pid is not None),
            *_counted(outcome, cell, tool),
        ),
        command=anonymous((tool.name, *arguments)),
    )


def _asked(site: Site, cell: HttpCell | EchoCell, tool: Tool) -> tuple[Job, tuple[str, ...], float]:
    """Return the job, the tool's arguments for it, and the seconds it may take."""
    if isinstance(cell, EchoCell):
        spec = LoadSpec(
            "echo batch",
            "closed",
            site.url(cell.path, "ws"),
            duration_s=cell.seconds,
            concurrency=cell.connections,
            messages=cell.messages,
            detail=cell.detail,
        )
        job = Job(spec.url, cell.connections, 0, cell.seconds, keepalive=False)
        return job, locust.spec_command(spec), LIMIT_S
    url = site.url(cell.path, "http")
    job = Job(url, cell.clients, cell.sent, cell.seconds, cell.keepalive)
    body = page(url)
    if tool.compares_bodies:
        job = replace(job, expect_body=body)
    return job, tool.command(job), LIMIT_S


def _gates(outcome: Outcome, used: Usage, machine: Machine, *, known: bool) -> Iterator[Gate]:
    """Yield what says whether the figures are those of the server.

    That a generator was at its limit is advisory here: it is what a comparison of generators is
    to find out. Of a server of one's own it cannot be told who is foreign.
    """
    ok = outcome.ok > 0
    yield Gate("replies", ok, outcome.ok, 1, "replies", "" if ok else "nothing was answered")
    yield replace(gates.generator_cpu(used, machine), advisory=True)
    if known:
        yield gates.foreign_cpu(machine)
    yield gates.steal(machine, psutil.cpu_count() or 1)


def _counted(outcome: Outcome, cell: HttpCell | EchoCell, tool: Tool) -> Iterator[Gate]:
    if isinstance(cell, HttpCell) and tool.counts_requests:
        yield sent(outcome, cell)


def sent(outcome: Outcome, cell: HttpCell) -> Gate:
    """Say whether what was asked for was sent: a tool that came to its limit did something else.

    A request of each client may be missing: hey rounds down, others leave what is under way.
    """
    came, needed = outcome.ok + outcome.failed, cell.sent - cell.clients
    ok = came >= needed
    reason = f"only {came:,} of {cell.sent:,} requests were sent, in {outcome.elapsed_s:.0f} s"
    return Gate("requests sent", ok, came, needed, "requests", "" if ok else reason)
