"""CPU, memory and processes of a server while it is measured, and what else the machine did.

A thread in the runner takes a ``Snapshot`` of cumulative counters a few times a second; afterwards
``usage`` and ``machine`` cut them to the window in which the load was measured. So the start of the
generator and the warm-up stay out, and nothing has to happen at the right moment.

Who is counted where:

- the *server* is everything below supervisord: servers, workers, proxies, Redis. Supervisord itself
  is not: it is the same for every variant, and in production may be systemd;
- the *generator* is the load driver's process tree;
- *ours* is both, supervisord, and the runner with this thread in it;
- *foreign* is every other process on the machine. It is the noise. The kernel's threads for
  interrupts are not: with a connection for each request they use 2 % of a core here, for the load.

A process that ends leaves its time to the parent that waits for it, and both are in the tree, so
workers that restart lose nothing. Processes in other containers cannot be seen; ``busy_cores``
counts them, coarsely.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import Self

import psutil

from bench.processes import Process, descendants, pss_bytes, read
from bench.records import Machine, Usage

INTERVAL_S = 0.25
_BREATH_S = 0.001
_COST_SHARE = 0.01  # of one core: on a machine with thousands of processes, sample less often


class TooShort(ValueError):  # noqa: N818 - it says what is wrong with a measurement
    """There are too few snapshots in a window to say anything about it."""


@dataclass(frozen=True)
class Tree:
    """A process tree at one moment; CPU times since the beginning of each process."""

    user_s: float = 0.0
    system_s: float = 0.0
    rss_bytes: int = 0
    processes: int = 0
    own_s: dict[int, float] = field(default_factory=dict)  # pid -> its CPU time, children's not

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s


@dataclass(frozen=True)
class Snapshot:
    """Everything counted, at one moment of CLOCK_MONOTONIC."""

    at_s: float
    server: Tree
    generator: Tree
    foreign_s: float
    busy_s: float
    steal_s: float


def tree(processes: dict[int, Process], pids: set[int], without: int | None = None) -> Tree:
    """Return the sum over ``pids``; of ``without`` only what its past children used counts."""
    members = [processes[pid] for pid in pids if pid in processes and pid != without]
    reapers = [processes[pid] for pid in pids if pid in processes]
    return Tree(
        user_s=sum(one.user_s for one in members) + sum(one.reaped_user_s for one in reapers),
        system_s=sum(one.system_s for one in members) + sum(one.reaped_system_s for one in reapers),
        rss_bytes=sum(one.rss_bytes for one in members),
        processes=len(members),
        own_s={one.pid: one.own_s for one in members},
    )


def _let_others() -> None:
    """Leave the processor for a moment.

    The generator is on the same one, and the kernel lets a task run for milliseconds before it
    makes room for one that has just woken up. In one piece, each pass would make a request late.
    """
    time.sleep(_BREATH_S)


class Sampler:
    """Takes snapshots from ``with`` to its end; ``server`` is the pid of supervisord.

    ``pss_bytes`` is the server's memory right after the load: reading it holds up the processes it
    reads, so it is not read while their answers are timed. None until then, and where the kernel
    does not tell.
    """

    def __init__(
        self,
        server: int,
        generator: int,
        read_processes: Callable[[], dict[int, Process]] = lambda: read(_let_others),
    ) -> None:
        self.snapshots: list[Snapshot] = []
        self.pss_bytes: int | None = None
        self._server = server
        self._generator = generator
        self._read = read_processes
        self._seen: dict[str, set[tuple[int, int]]] = {"server": set(), "ours": set()}
        self._stop = threading.Event()
        self._thread = ThreadPoolExecutor(1, "sampler")

    def __enter__(self) -> Self:
        self.take()
        self._running = self._thread.submit(self._run)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.shutdown()
        if error is None:
            self._running.result()  # raises what went wrong in the thread
            self.take()
            below = descendants(self._read(), [self._server]) - {self._server}
            self.pss_bytes = pss_bytes(below)

    def _run(self) -> None:
        interval_s = INTERVAL_S
        while not self._stop.wait(interval_s):
            before_s = time.thread_time()
            self.take()
            cost_s = time.thread_time() - before_s
            interval_s = max(INTERVAL_S, cost_s / _COST_SHARE)

    def take(self) -> None:
        """Append one snapshot."""
        processes = self._read()
        cpu = psutil.cpu_times()
        server = self._members("server", processes, {self._server})
        generator = descendants(processes, [self._generator])
        ours = self._members("ours", processes, {self._server, self._generator, os.getpid()})
        foreign_s = sum(
            one.whole_s
            for pid, one in processes.items()
            if pid not in ours and not one.is_of_the_load
        )
        last = self.snapshots[-1].generator if self.snapshots else Tree()
        self.snapshots.append(
            Snapshot(
                at_s=time.monotonic(),
                server=tree(processes, server, without=self._server),
                # When the generator has ended, what it used stays as it was.
                generator=tree(processes, generator) if generator else last,
                foreign_s=foreign_s,
                busy_s=cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq,
                steal_s=cpu.steal,
            )
        )

    def _members(self, who: str, processes: dict[int, Process], roots: set[int]) -> set[int]:
        """Return the pids below ``roots``, and those that once were and have been orphaned."""
        identity = {(pid, one.started_ticks) for pid, one in processes.items()}
        orphans = {pid for pid, _ in self._seen[who] & identity}
        members = descendants(processes, roots | orphans)
        self._seen[who] |= {(pid, processes[pid].started_ticks) for pid in members}
        return members


def usage(
    snapshots: Sequence[Snapshot],
    of: Callable[[Snapshot], Tree],
    start_s: float,
    end_s: float,
    pss: int | None = None,
) -> Usage:
    """Return what the tree ``of`` used between two moments; raise ``TooShort`` if unseen."""
    inside = _inside(snapshots, start_s, end_s)
    first, last = of(inside[0]), of(inside[-1])
    span_s = inside[-1].at_s - inside[0].at_s
    steps = [
        (of(later).cpu_s - of(earlier).cpu_s) / (later.at_s - earlier.at_s)
        for earlier, later in pairwise(inside)
    ]
    alone = [used_s - first.own_s.get(pid, 0.0) for pid, used_s in last.own_s.items()]
    return Usage(
        cpu_user_s=_used(snapshots, lambda one: of(one).user_s, start_s, end_s),
        cpu_system_s=_used(snapshots, lambda one: of(one).system_s, start_s, end_s),
        cpu_max_cores=max(steps),
        pss_max_bytes=pss,
        rss_max_bytes=max(of(one).rss_bytes for one in inside) or None,
        processes_max=max(of(one).processes for one in inside),
        cpu_busiest_process_cores=max(alone) / span_s if alone else None,
    )


def machine(snapshots: Sequence[Snapshot], start_s: float, end_s: float) -> Machine:
    """Return what the rest of the machine did between two moments."""
    wall_s = end_s - start_s
    return Machine(
        wall_s=wall_s,
        busy_cores=_used(snapshots, lambda one: one.busy_s, start_s, end_s) / wall_s,
        foreign_cores=_used(snapshots, lambda one: one.foreign_s, start_s, end_s) / wall_s,
        steal_cores=_used(snapshots, lambda one: one.steal_s, start_s, end_s) / wall_s,
    )


def _inside(snapshots: Sequence[Snapshot], start_s: float, end_s: float) -> Sequence[Snapshot]:
    inside = [one for one in snapshots if start_s <= one.at_s <= end_s]
    if len(inside) < 2:
        raise TooShort(f"{len(inside)} samples of the server's CPU in {end_s - start_s:.2f} s")
    return inside


def _used(
    snapshots: Sequence[Snapshot],
    counter: Callable[[Snapshot], float],
    start_s: float,
    end_s: float,
) -> float:
    """Return by how much ``counter`` grew, each step by the share of it that lies in the window.

    A step back is none: it is a process whose parent did not wait for it.
    """
    total = 0.0
    for earlier, later in pairwise(snapshots):
        overlap_s = min(later.at_s, end_s) - max(earlier.at_s, start_s)
        if overlap_s > 0:
            share = overlap_s / (later.at_s - earlier.at_s)
            total += share * max(0.0, counter(later) - counter(earlier))
    return total
