"""How a coroutine waits for a channel and is woken with no detour.

An ``asyncio.Future`` resumes its task one round of the event loop after it is resolved, which
costs more than everything else a small message needs. A ``Waiter`` speaks the same protocol to the
task, and ``resume`` runs the task at once. What was sent stays queued until the woken coroutine
takes it, so a task cancelled in between has lost nothing; ``hand`` saves the queue its part where
the task takes the message before anything else can happen.
"""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextvars import Context
from typing import Any


class Waiter:
    """One coroutine, waiting. ``resume`` and ``cancel`` act once; what comes later does nothing."""

    # Defaults on the class: a waiter is made for every receive that has to wait.
    done = False
    payload: Any = None  # handed over, and not yet taken
    _cancelled = False
    _asyncio_future_blocking = False
    _callback: Callable[[Any], object] | None = None
    _context: Context | None = None

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def __await__(self) -> Generator["Waiter", None, Any]:
        """Wait; return what was handed over, ``None`` where it is to be taken from the queue."""
        if not self.done:
            self._asyncio_future_blocking = True
            yield self
        payload, self.payload = self.payload, None
        return payload

    def resume(self) -> None:
        """Run the waiting task, now. Only for the loop's own thread, and never inside a task."""
        if not self.done:
            self.done = True
            if self._callback is not None and self._context is not None:
                self._context.run(self._callback, self)

    def hand(self, payload: Any) -> None:
        """Resume the waiting task with ``payload``, which stays here if it does not take it."""
        self.payload = payload
        self.done = True  # as in ``resume``, without another call
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
    mine: deque[Waiter] = deque()
    for waiter in waiters:
        if waiter.loop is here:
            mine.append(waiter)
        else:
            _wake_elsewhere(waiter)
    if mine and here is not None:
        here.call_soon(resume_all, mine)


def wake_now(waiters: list[Waiter], here: asyncio.AbstractEventLoop) -> None:
    """The same from a callback of the loop ``here``, outside any task: its own resume at once."""
    if len(waiters) == 1 and waiters[0].loop is here:
        return waiters[0].resume()
    mine: deque[Waiter] = deque()
    for waiter in waiters:
        if waiter.loop is here:
            mine.append(waiter)
        else:
            _wake_elsewhere(waiter)
    return resume_all(mine)


def _wake_elsewhere(waiter: Waiter) -> None:
    # A loop that was closed a moment ago has taken its coroutines with it.
    with contextlib.suppress(RuntimeError):
        waiter.loop.call_soon_threadsafe(waiter.resume)


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
