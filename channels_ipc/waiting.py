"""How a coroutine waits for a channel and is woken with no detour.

An ``asyncio.Future`` resumes its task one round of the event loop after it is resolved, which
costs more than everything else a small message needs. A ``Waiter`` speaks the same protocol to the
task, and ``resume`` runs the task at once. It carries no message: what was sent stays queued until
the woken coroutine takes it, so a task cancelled in between has lost nothing.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextvars import Context
from typing import Any


class Waiter:
    """One coroutine, waiting. ``resume`` and ``cancel`` act once; what comes later does nothing."""

    __slots__ = ("_asyncio_future_blocking", "_callback", "_cancelled", "_context", "done", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.done = False
        self._cancelled = False
        self._asyncio_future_blocking = False
        self._callback: Callable[[Any], object] | None = None
        self._context: Context | None = None

    def __await__(self) -> Generator["Waiter", None, None]:
        if not self.done:
            self._asyncio_future_blocking = True
            yield self

    def resume(self) -> None:
        """Run the waiting task, now. Only for the loop's own thread, and never inside a task."""
        if not self.done:
            self.done = True
            if self._callback is not None and self._context is not None:
                self._context.run(self._callback, self)

    # What a task expects of the future it waits for.

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.loop

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Context) -> None:
        self._callback = callback
        self._context = context

    def cancel(self, msg: object = None) -> bool:
        if self.done:
            return False
        self.done = self._cancelled = True
        if self._callback is not None:
            self.loop.call_soon(self._callback, self, context=self._context)
        return True

    def result(self) -> None:
        if self._cancelled:
            raise asyncio.CancelledError


def resume_all(waiters: "deque[Waiter]") -> None:
    """Resume ``waiters``, all of one loop, in order. One that exits the loop stops no other."""
    try:
        while waiters:
            waiters.popleft().resume()
    finally:
        if waiters:
            waiters[0].loop.call_soon(resume_all, waiters)


def wake(waiters: Iterable[Waiter]) -> None:
    """Have ``waiters`` resumed soon, each by its own loop, from any thread."""
    here = asyncio._get_running_loop()
    by_loop: dict[asyncio.AbstractEventLoop, deque[Waiter]] = {}
    for waiter in waiters:
        by_loop.setdefault(waiter.loop, deque()).append(waiter)
    for loop, woken in by_loop.items():
        if loop is here:
            loop.call_soon(resume_all, woken)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(resume_all, woken)


class Listener:
    """One loop's watch over a FIFO. The descriptor is its own, so it can be closed at any time."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, fd: int, on_readable: Callable[[], None]
    ) -> None:
        self.loop = loop
        self.fd = os.dup(fd)
        self._on_readable = on_readable
        self._watching = False
        self.watch()

    def watch(self) -> None:
        if not self._watching:
            self._watching = True
            # In an empty context, so that it holds on to nothing of the task that came first.
            Context().run(self.loop.add_reader, self.fd, self._on_readable)

    def rest(self) -> None:
        """Stop watching until ``watch`` is called again."""
        if self._watching:
            self._watching = False
            self.loop.remove_reader(self.fd)

    def stop(self) -> None:
        """End the watch, from any thread."""
        if self.loop.is_closed():
            os.close(self.fd)
        elif asyncio._get_running_loop() is self.loop or not self.loop.is_running():
            self._end()
        else:
            self.loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.rest()
        os.close(self.fd)

    def forget(self) -> None:
        """Close the descriptor in a child process, whose parent's loop must not notice."""
        os.close(self.fd)
