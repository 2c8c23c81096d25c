"""Ticks on schedule for an asyncio loop.

asyncio's own timers are up to a millisecond late, because its epoll counts in milliseconds. A
timerfd becomes readable at the microsecond asked for, and the loop watches it like any socket.
"""

import asyncio
import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TFD_TIMER_ABSTIME = 1
_NANOSECONDS = 1_000_000_000

clock = time.monotonic  # CLOCK_MONOTONIC, the clock of the timerfd


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


@contextmanager
def ticking(start_s: float, interval_s: float, tick: Callable[[], None]) -> Iterator[None]:
    """Call ``tick`` in the running loop at ``start_s`` on ``clock`` and every ``interval_s`` after.

    A tick that comes late stands for all that were due: ``tick`` must look at the clock.
    """
    loop, descriptor = asyncio.get_running_loop(), _started(start_s, interval_s)

    def ring() -> None:
        os.read(descriptor, 8)
        tick()

    loop.add_reader(descriptor, ring)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _started(start_s: float, interval_s: float) -> int:
    """Return a timerfd that ticks. ``os.timerfd_create`` exists from Python 3.13 only."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "timerfd_create failed")
    spec = _Itimerspec(_timespec(interval_s), _timespec(start_s))
    if libc.timerfd_settime(descriptor, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None):
        raise OSError(ctypes.get_errno(), "timerfd_settime failed")
    return descriptor


def _timespec(seconds: float) -> _Timespec:
    return _Timespec(*divmod(round(seconds * _NANOSECONDS), _NANOSECONDS))
