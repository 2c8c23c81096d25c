"""Waking up at a moment, for an asyncio loop.

asyncio's own timers are up to a millisecond late, because its epoll counts in milliseconds. A
timerfd wakes the loop shortly before the moment, and the rest is spun away: waking an idle
processor takes as long as a fast layer's whole round trip, and is not the layer's doing.
"""

import asyncio
import ctypes
import os
import time

SPIN_S = 0.0003
_TFD_TIMER_ABSTIME = 1
_NANOSECONDS = 1_000_000_000

clock = time.monotonic  # CLOCK_MONOTONIC, the clock of the timerfd


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Alarm:
    """Wakes one coroutine of the running loop."""

    def __init__(self) -> None:
        # os.timerfd_create exists from Python 3.13 only.
        self._libc = ctypes.CDLL(None, use_errno=True)
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._descriptor = int(self._libc.timerfd_create(time.CLOCK_MONOTONIC, flags))
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._rung: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._ring)

    async def until(self, moment_s: float) -> None:
        """Return at ``moment_s`` on ``clock``; at once where that has passed."""
        if clock() < moment_s - SPIN_S:
            self._set(moment_s - SPIN_S)
            self._rung = self._loop.create_future()
            await self._rung
        while clock() < moment_s:
            pass

    def _ring(self) -> None:
        os.read(self._descriptor, 8)
        if self._rung is not None and not self._rung.done():
            self._rung.set_result(None)

    def _set(self, moment_s: float) -> None:
        seconds, nanoseconds = divmod(round(moment_s * _NANOSECONDS), _NANOSECONDS)
        spec = _Itimerspec(_Timespec(0, 0), _Timespec(seconds, nanoseconds))
        wanted = ctypes.byref(spec)
        if self._libc.timerfd_settime(self._descriptor, _TFD_TIMER_ABSTIME, wanted, None):
            raise OSError(ctypes.get_errno(), "timerfd_settime failed")

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
