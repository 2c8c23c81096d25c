"""CPU and memory of a process tree, first from made-up counters, then from real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest

from bench import gates
from bench.processes import Process
from bench.records import Machine, Usage
from bench.sample import INTERVAL_S, Sampler, Snapshot, TooShort, Tree, machine, usage

SERVER, GENERATOR = 10, 20


def process(pid: int, parent: int, own_s: float = 0.0, reaped_s: float = 0.0) -> Process:
    return Process(pid, parent, pid, own_s, 0.0, reaped_s, 0.0, rss_bytes=1000)


def snapshot(at_s: float, cpu_s: float, **changes: Any) -> Snapshot:
    values: dict[str, Any] = {
        "server": Tree(cpu_s, 0.0, 1000, 1, {7: cpu_s}),
        "generator": Tree(),
        "foreign_s": 0.0,
        "busy_s": 0.0,
        "steal_s": 0.0,
    }
    return Snapshot(at_s, **(values | changes))


def taken(*moments: list[Process]) -> list[Snapshot]:
    """Return the snapshots of a sampler that saw these processes, one moment after the other."""
    passes = iter([{one.pid: one for one in moment} for moment in moments])
    sampler = Sampler(SERVER, GENERATOR, lambda: next(passes))
    for _ in moments:
        sampler.take()
    return sampler.snapshots


def test_usage_is_cut_to_the_window() -> None:
    steady = [snapshot(at_s, cpu_s=at_s / 2) for at_s in range(11)]
    found = usage(steady, attrgetter("server"), 2.5, 7.5)
    assert found.cpu_user_s == pytest.approx(2.5)
    assert found.cpu_max_cores == pytest.approx(0.5)
    assert found.cpu_busiest_process_cores == pytest.approx(0.5)


def test_usage_knows_the_busiest_interval_and_the_largest_memory() -> None:
    snapshots = [
        snapshot(at_s, 0.0, server=Tree(cpu_s, 0.0, rss, processes, {7: cpu_s}))
        for at_s, cpu_s, rss, processes in [(0, 0, 10, 1), (1, 0.9, 30, 3), (2, 1.0, 20, 2)]
    ]
    found = usage(snapshots, attrgetter("server"), 0, 2, pss=17)
    assert found.cpu_max_cores == pytest.approx(0.9)
    assert (found.rss_max_bytes, found.pss_max_bytes, found.processes_max) == (30, 17, 3)


def test_usage_of_a_window_without_snapshots_is_refused() -> None:
    with pytest.raises(TooShort, match="1 samples"):
        usage([snapshot(0, 0), snapshot(5, 1)], attrgetter("server"), 4, 6)


def test_machine_is_told_in_cores() -> None:
    snapshots = [
        snapshot(at_s, 0, busy_s=at_s * 1.5, foreign_s=at_s * 0.25, steal_s=at_s * 0.125)
        for at_s in range(5)
    ]
    assert machine(snapshots, 1, 3) == Machine(2, 1.5, 0.25, 0.125)


def test_worker_that_ended_leaves_its_time_to_the_tree() -> None:
    before, after = taken(
        [process(SERVER, 1), process(11, SERVER, 1.0), process(12, 11, 5.0)],
        [process(SERVER, 1), process(11, SERVER, 1.0, reaped_s=6.0), process(13, 11, 0.5)],
    )
    assert before.server.cpu_s == 6.0
    assert after.server.cpu_s == 7.5  # 1 of its own, 6 of the worker that ended, 0.5 of the next


def test_supervisord_is_not_the_server_but_what_it_reaped_is() -> None:
    (one,) = taken([process(SERVER, 1, own_s=9.0, reaped_s=2.0), process(11, SERVER, 1.0)])
    assert one.server.cpu_s == 3.0
    assert one.server.processes == 1
    assert one.server.rss_bytes == 1000


def test_interrupts_are_not_foreign_and_other_threads_of_the_kernel_are() -> None:
    (one,) = taken(
        [
            process(SERVER, 1),
            replace(process(90, 2, own_s=4.0), name="ksoftirqd/1"),
            replace(process(91, 2, own_s=0.5), name="kcompactd0"),
        ]
    )
    assert one.foreign_s == 0.5


def test_orphan_of_the_tree_still_belongs_to_it() -> None:
    _, after = taken(
        [process(SERVER, 1), process(11, SERVER), process(12, 11, 1.0)],
        [process(SERVER, 1), process(12, 1, 2.0)],
    )
    assert after.server.cpu_s == 2.0


def test_pid_that_comes_again_is_somebody_else() -> None:
    stranger = Process(12, 1, 999, 8.0, 0.0, 0.0, 0.0, 0)
    _, after = taken([process(SERVER, 1), process(12, SERVER, 1.0)], [process(SERVER, 1), stranger])
    assert after.server.cpu_s == 0.0
    assert after.foreign_s == 8.0


def test_generator_that_has_ended_keeps_what_it_used() -> None:
    _, after = taken(
        [process(SERVER, 1), process(GENERATOR, 1, 3.0)],
        [process(SERVER, 1)],
    )
    assert after.generator.cpu_s == 3.0


def test_foreign_is_everybody_else() -> None:
    (one,) = taken(
        [
            process(SERVER, 1, 1.0),
            process(11, SERVER, 2.0),
            process(GENERATOR, 1, 4.0),
            process(1, 0, 8.0),
            process(99, 1, 16.0, reaped_s=32.0),
        ]
    )
    assert one.foreign_s == 56.0


def test_counter_that_steps_back_counts_as_standing_still() -> None:
    steps = [snapshot(0, 0, foreign_s=5.0), snapshot(1, 0, foreign_s=1.0)]
    assert machine([*steps, snapshot(2, 0, foreign_s=1.5)], 0, 2).foreign_cores == 0.25


# Real processes

BURN = "while True: pass"
BURN_IN_CHILDREN = """
import subprocess, sys
while True:
    subprocess.run([sys.executable, "-c", "for _ in range(3_000_000): pass"])
"""
BURN_FOR_A_WHILE = """
import time
end = time.monotonic() + 3
while time.monotonic() < end: pass
"""
ORPHAN = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1]])
os._exit(0)
"""


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Returns a function that runs Python code below a parent, which stands for supervisord."""
    started: list[subprocess.Popen[bytes]] = []

    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"

    def run(code: str) -> subprocess.Popen[bytes]:
        one = subprocess.Popen([sys.executable, "-c", parent, code], start_new_session=True)
        started.append(one)
        return one

    yield run
    for one in started:
        os.killpg(one.pid, signal.SIGKILL)
        one.wait()


def sampled(server: int, generator: int, seconds: float) -> tuple[Sampler, Usage, Machine]:
    """Return what was seen in ``seconds``."""
    with Sampler(server, generator) as sampler:
        time.sleep(seconds)
    first, last = sampler.snapshots[0].at_s, sampler.snapshots[-1].at_s
    return (
        sampler,
        usage(sampler.snapshots, attrgetter("server"), first, last, sampler.pss_bytes),
        machine(sampler.snapshots, first, last),
    )


@pytest.mark.timing
@pytest.mark.parametrize("code", [BURN, BURN_IN_CHILDREN])
def test_sampler_sees_a_busy_server(
    start: Callable[..., subprocess.Popen[bytes]], code: str
) -> None:
    server, idle = start(code), start("import time; time.sleep(60)")
    time.sleep(0.3)
    _, used, _ = sampled(server.pid, idle.pid, 2.0)
    busy_s = used.cpu_user_s + used.cpu_system_s
    assert 0.3 < busy_s < 2.5  # one core at most, and no less than a busy machine leaves it
    assert used.pss_max_bytes
    assert used.rss_max_bytes


@pytest.mark.timing
def test_sampler_of_an_idle_server_sees_nothing_and_costs_little(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    idle, other = start("import time; time.sleep(60)"), start("import time; time.sleep(60)")
    time.sleep(0.5)
    before_s = time.process_time()
    _, used, _ = sampled(idle.pid, other.pid, 4 * INTERVAL_S)
    cost_s = time.process_time() - before_s
    assert used.cpu_user_s + used.cpu_system_s <= 0.05
    assert cost_s < 0.05 * 4 * INTERVAL_S


@pytest.mark.timing
def test_foreign_gate_fires_when_somebody_else_is_busy(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    idle, other = start("import time; time.sleep(60)"), start("import time; time.sleep(60)")
    # A process whose parent has ended is nobody's we know.
    subprocess.run([sys.executable, "-c", ORPHAN, BURN_FOR_A_WHILE], check=True)
    _, _, seen = sampled(idle.pid, other.pid, 1.5)
    assert not gates.foreign_cpu(seen).ok
