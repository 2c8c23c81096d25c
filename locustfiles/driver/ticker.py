"""An alarm that rings at an absolute time, to within some tens of microseconds.

``gevent.sleep`` wakes up to a millisecond late, because libev's epoll counts in milliseconds. A
timerfd is a file descriptor that becomes readable at the nanosecond asked for, which gevent can
watch like any socket.
"""

import ctypes
import os
import sys
import time
from collections.abc import Callable
from typing import Any

READABLE = 1  # libev's EV_READ
TFD_TIMER_ABSTIME = 1
NANOSECONDS = 1_000_000_000

clock = time.monotonic  # CLOCK_MONOTONIC, the clock of the timerfd


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Ticker:
    """Calls ``ring`` in the event loop at the time given to ``set``. Linux only.

    ``os.timerfd_create`` exists from Python 3.13; until then libc is called directly.
    """

    def __init__(self, loop: Any, ring: Callable[[], None]) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("the load driver schedules by timerfd, which only Linux has")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._spec = _Itimerspec()
        self._reference = ctypes.byref(self._spec)
        self._fd = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._watcher = loop.io(self._fd, READABLE)
        self._watcher.start(ring)

    def set(self, at: float) -> None:
        """Ring at ``at`` on ``clock``: at once if that is past. Replaces the time set before.

        Setting a timerfd also makes it unreadable again: nobody has to read it.
        """
        # A time of zero would disarm the timer.
        self._spec.value.seconds, self._spec.value.nanoseconds = divmod(
            max(1, int(at * NANOSECONDS)), NANOSECONDS
        )
        if self._libc.timerfd_settime(self._fd, TFD_TIMER_ABSTIME, self._reference, None):
            raise OSError(ctypes.get_errno(), "timerfd_settime failed")

    def close(self) -> None:
        self._watcher.stop()
        self._watcher.close()
        os.close(self._fd)
