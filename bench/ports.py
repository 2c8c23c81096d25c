"""Every TCP port this project listens on, and the only place where one is written down.

They are the ports of the balancing studies where those are free of each other.
"""

import errno
import socket

import psutil

from bench.errors import BadInput
from bench.variants import Variant

APPLICATION = 8000  # the application server by itself
APPLICATION_FIRST = 8010  # with ``sharing=ports``: one port a process, counted up from here
NGINX = 8008
NGINX_KEPT = 8009  # the same, with connections to the server kept: `bench baselines`
HAPROXY = 9000
GUNICORN_ONE_WORKER = 9001
APACHE = 8081
SWARM = 8007
SWARM_MANAGER = 2377  # Docker's own ...
SWARM_GOSSIP = 7946  # ... and one that it cannot be told to change
REDIS = 6390  # not 6379: that one belongs to somebody else
LOCUST_WEB = 8089


def front(variant: Variant) -> int:
    """Return the port that the clients of ``variant`` connect to."""
    fronts = {"nginx": NGINX, "haproxy": HAPROXY, "apache": APACHE, "swarm": SWARM}
    return fronts.get(variant.proxy) or application(variant)[0]


def application(variant: Variant) -> tuple[int, ...]:
    """Return the ports that the server of ``variant`` listens on."""
    if variant.sharing == "ports":
        return tuple(range(APPLICATION_FIRST, APPLICATION_FIRST + variant.processes))
    alone = (variant.server, variant.processes, variant.proxy, variant.stack)
    one_worker = alone == ("gunicorn", 1, "direct", "today")
    return (GUNICORN_ONE_WORKER if one_worker else APPLICATION,)


def require_free(port: int) -> None:
    """Raise ``BadInput`` that names the process which listens on the loopback ``port``."""
    if not is_free(port):
        raise BadInput(f"port {port} is held by {holder(port)}: stop it first")


def is_free(port: int) -> bool:
    """Whether a server could listen on the loopback ``port`` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True


def holder(port: int) -> str:
    """Return who listens on ``port``, for a person: its pid and command line where visible."""
    for connection in psutil.net_connections(kind="tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            return _described(connection.pid)
    return "a process that is just ending"


def _described(pid: int | None) -> str:
    if pid is None:
        return "a process of another user"
    try:
        return f"pid {pid} ({' '.join(psutil.Process(pid).cmdline())})"
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return f"pid {pid}"
