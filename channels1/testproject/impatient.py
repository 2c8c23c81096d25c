"""Daphne 1.4.2 with another sleep after a look at the layer that found nothing: docs/2016-stack.md.

As released it is 50 ms. For the proof that this sleep is what holds asgi_ipc back.
"""

from daphne import server

RELEASED_S = 0.05


def sleep_for(sleep_s):
    """Let the Daphne of this process sleep ``sleep_s`` seconds there, and change nothing else."""
    server.reactor = Impatient(server.reactor, sleep_s)


class Impatient:
    """The reactor as Daphne sees it."""

    def __init__(self, reactor, sleep_s):
        self._reactor = reactor
        self._sleep_s = sleep_s

    def __getattr__(self, name):
        return getattr(self._reactor, name)

    def callLater(self, delay, call, *arguments):  # noqa: N802 - Twisted's name
        if delay == RELEASED_S and call.__name__ == "backend_reader_sync":
            delay = self._sleep_s
        return self._reactor.callLater(delay, call, *arguments)
