"""What the supervisord of this checkout says of itself, by XML-RPC over its unix socket."""

import time
import xmlrpc.client
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from supervisor.xmlrpc import SupervisorTransport

from bench import remains

_SOCKET = remains.RUN / "supervisor.sock"
_PAUSE_S = 0.05
_SILENT = (OSError, xmlrpc.client.Error)


def programs() -> list[dict[str, Any]]:
    """Return what supervisord says of each process; empty where it does not answer yet."""
    try:
        with _supervisor() as supervisor:
            return list(supervisor.getAllProcessInfo())
    except _SILENT:
        return []


def supervisord_pid() -> int | None:
    """Return the pid of the supervisord that serves this checkout, ``None`` without one."""
    try:
        with _supervisor() as supervisor:
            return int(supervisor.getPID())
    except _SILENT:
        return None


def stop(*names: str) -> None:
    """Stop the processes called ``group:name``, all at the same time."""
    with _supervisor() as supervisor:
        for name in names:
            supervisor.stopProcess(name, False)
    while any(one["statename"] == "STOPPING" for one in programs()):
        time.sleep(_PAUSE_S)


def start(*names: str) -> None:
    """Start the processes called ``group:name``; what they answer is another question."""
    with _supervisor() as supervisor:
        for name in names:
            supervisor.startProcess(name, False)


@contextmanager
def _supervisor() -> Iterator[Any]:
    # The transport knows where to go; the URL is there because a ServerProxy insists on one.
    with closing(SupervisorTransport(None, None, f"unix://{_SOCKET}")) as transport:
        yield xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport).supervisor
