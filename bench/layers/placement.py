"""Which processor each process of a measurement runs on: the same for every layer."""

import os
from collections.abc import Sequence
from pathlib import Path

TOGETHER = "together"  # both ends on one processor, where only one of them works at a time
APART = "apart"  # each end on a processor of its own: both work at once
BESIDE = "beside"  # the first two together, the third apart from them
ANYWHERE = "anywhere"  # where the kernel puts them: more processes than processors

Cpus = tuple[int, ...]


def placed(placement: str, processes: int, cpus: Sequence[int]) -> list[Cpus]:
    """Return the processors of each of ``processes``, of those in ``cpus``.

    The last is taken first: the first is where interrupts and the kernel's housekeeping go. With a
    single processor everything is on it.
    """
    last, other = cpus[-1], cpus[0]
    if placement == TOGETHER:
        return [(last,)] * processes
    if placement == APART:
        return [(last,) if number % 2 == 0 else (other,) for number in range(processes)]
    if placement == BESIDE:
        return [(last,) if number < 2 else (other,) for number in range(processes)]
    return [tuple(cpus)] * processes


def server(placement: str, cpus: Sequence[int]) -> Cpus:
    """Return the processors of redis-server: where both ends are, or else all."""
    return placed(placement, 1, cpus)[0] if placement == TOGETHER else tuple(cpus)


def usable() -> Cpus:
    return tuple(sorted(os.sched_getaffinity(0)))


def confine(pid: int, cpus: Cpus) -> None:
    """Keep every thread of ``pid`` on ``cpus``."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), cpus)
