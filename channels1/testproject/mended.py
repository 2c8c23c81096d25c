"""asgi_ipc 1.1.0 with what made it collapse mended, one thing at a time: docs/2016-stack.md.

For the proof that these two are the reasons, and for nothing else. asgi_ipc 1.4 mended both in ways
of its own, and has no ``MemoryDict``: this does not import there.
"""

from asgi_ipc import IPCChannelLayer, MemoryDict

MENDS = ("channels", "semaphore")


class MendedChannelLayer(IPCChannelLayer):
    """The published layer, with those of ``MENDS`` mended that ``mended`` names.

    ``channels``: taking the last message of a channel removes the channel. ``semaphore``: what
    reads the channels and writes them back holds their semaphore from one to the other. A name
    that is none of them raises ``ValueError``. Groups stay as they were published.
    """

    def __init__(self, mended, **config):
        if not set(mended) <= set(MENDS):
            raise ValueError(f"mended is {mended}: there are {MENDS}")
        super().__init__(**config)
        self.mended = sorted(mended)
        if "channels" in mended:
            self.channel_store = NoEmptyLists(self.channel_store.path, self.channel_store.size)
        if "semaphore" in mended:
            self.channel_store.semaphore = Reentrant(self.channel_store)
            self.thread_lock = Both(self.thread_lock, self.channel_store.semaphore)


class NoEmptyLists(MemoryDict):
    """Writing an empty list removes the key, in the one step that would have stored the list."""

    def __setitem__(self, key, value):
        if value:
            super().__setitem__(key, value)
        else:
            self.discard(key)


class Reentrant:
    """The semaphore of ``store``, for its holder to take again: only the first time counts.

    One thread at a time may use it. The published store gives a semaphore that is not free within
    ``death_timeout`` for that of a dead process, and empties itself; here ``posix_ipc.BusyError``
    says so.
    """

    def __init__(self, store):
        self._semaphore = store.semaphore
        self._patience_s = store.death_timeout
        self._taken = 0

    def acquire(self, timeout=None):
        if not self._taken:
            self._semaphore.acquire(self._patience_s)
        self._taken += 1

    def release(self):
        self._taken -= 1
        if not self._taken:
            self._semaphore.release()


class Both:
    """The layer's lock, which it holds from reading to writing, and with it the semaphore."""

    def __init__(self, lock, semaphore):
        self._lock = lock
        self._semaphore = semaphore

    def __enter__(self):
        # In this order: the semaphore knows processes, and no threads.
        self._lock.acquire()
        try:
            self._semaphore.acquire()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *error):
        self._semaphore.release()
        self._lock.release()
