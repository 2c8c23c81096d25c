"""The faults, and what each of them did to a deployment under load."""

import asyncio
import http.client
import json
import os
import signal
import time
import xmlrpc.client
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median

from websockets.exceptions import WebSocketException

from bench import control, ports, readiness
from bench.environment import HOST
from bench.faults.traffic import Seen, failed, observed, results
from bench.proxies import PROXIES, Proxy
from bench.supervise import Deployment, tree

BEFORE_S, AFTER_S = 0.5, 2.0
DOWN_S = 5.0  # longer than it takes a proxy's checks to notice
STALLED_S = 0.3  # a process is stopped before it is killed, so that requests wait in it
BACK_S = 30.0  # within which what was stopped must serve again, on a busy machine
RELOADS = 3


class Unharmed(RuntimeError):  # noqa: N818
    """The fault could not be brought about: there is nothing to say about it."""


_OBSTACLES = (Unharmed, OSError, WebSocketException, readiness.NotReady, xmlrpc.client.Error)


@dataclass(frozen=True)
class Outcome:
    """What a fault did.

    Sockets that ended count as ``inevitable`` where their process was killed or stopped, since no
    proxy can move a socket; None where that could not be told. ``repeated`` requests are among the
    others: a connection that was kept had ended, and they went on a new one.
    """

    variant: str
    fault: str
    requests: int
    results: dict[str, int]  # "ok" and every kind of failure, how often
    repeated: int
    slowest_ms: float  # of requests and handshakes
    median_failure_ms: float | None
    slowest_failure_ms: float | None  # None: no request failed
    failing_s: float | None  # from the fault to the last request that failed; None: none did
    sockets: int
    sockets_ended: dict[str, int]  # how, and how many
    sockets_inevitable: int | None
    handshakes: int  # of sockets that were opened meanwhile, for a message each
    handshakes_failed: dict[str, int]  # how, and how many
    messages_sent: int
    messages: int  # that came back
    messages_wrong: int

    @property
    def requests_lost(self) -> int:
        return self.requests - self.results.get("ok", 0)

    @property
    def messages_lost(self) -> int:
        return self.messages_sent - self.messages

    @property
    def sockets_lost(self) -> int | None:
        """How many ended that needed not to; None where that could not be told."""
        if self.sockets_inevitable is None:
            return None
        return sum(self.sockets_ended.values()) - self.sockets_inevitable


@dataclass(frozen=True)
class Fault:
    """``cause`` brings it about and returns the pids of the server processes it ended."""

    name: str
    title: str
    cause: Callable[[Deployment], set[int]]


def outcome(deployment: Deployment, fault: Fault) -> Outcome:
    """Return what ``fault`` does to ``deployment``, which serves again when this returns.

    Raises ``Unharmed`` where the load could not start, the fault not be caused, or not be undone.
    """
    ended: set[int] = set()
    load = observed(
        deployment.base_url,
        lambda: ended.update(fault.cause(deployment)),
        sockets=deployment.variant.interface == "asgi",
        before_s=BEFORE_S,
        after_s=AFTER_S,
    )
    try:
        seen, began_s = asyncio.run(load)
    except _OBSTACLES as error:
        raise Unharmed(f"{fault.name}: {error}") from error
    except ExceptionGroup as several:
        obstacles, others = several.split(_OBSTACLES)
        if obstacles is None or others is not None:
            raise
        raise Unharmed(f"{fault.name}: {obstacles.exceptions[0]}") from several
    return summed(deployment.variant.name, fault.name, seen, began_s, ended)


def summed(variant: str, fault: str, seen: Seen, began_s: float, ended: set[int]) -> Outcome:
    """Return ``seen`` in figures; ``ended`` are the pids of the processes that the fault ended."""
    lost, refused = failed(seen.requests), failed(seen.handshakes)
    gone = [socket for socket in seen.sockets if socket.ended]
    told = all(socket.pid for socket in seen.sockets)
    ends = [socket.ended for socket in gone if socket.ended]
    return Outcome(
        variant=variant,
        fault=fault,
        requests=len(seen.requests),
        results=results(seen.requests),
        repeated=sum(request.repeated for request in seen.requests),
        slowest_ms=_ms(max(one.took_s for one in (*seen.requests, *seen.handshakes))),
        median_failure_ms=_ms(median(one.took_s for one in lost)) if lost else None,
        slowest_failure_ms=_ms(max(one.took_s for one in lost)) if lost else None,
        failing_s=(
            round(max(one.sent_s + one.took_s for one in lost) - began_s, 2) if lost else None
        ),
        sockets=len(seen.sockets),
        sockets_ended={how: ends.count(how) for how in sorted(set(ends))},
        sockets_inevitable=sum(socket.pid in ended for socket in gone) if told else None,
        handshakes=len(seen.handshakes),
        handshakes_failed=results(refused),
        messages_sent=sum(socket.sent for socket in seen.sockets),
        messages=sum(socket.returned for socket in seen.sockets),
        messages_wrong=sum(socket.wrong for socket in seen.sockets),
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def kill_one(deployment: Deployment) -> set[int]:
    """Kill a process over what it was asked; supervisord, or its parent, starts another."""
    port = ports.application(deployment.variant)[0]
    pid = own(deployment, port)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STALLED_S)
    os.kill(pid, signal.SIGKILL)
    _until(lambda: _serving(port) not in (None, pid), "another process serves")
    return {pid}


def restart_one(deployment: Deployment) -> set[int]:
    """Stop a server as one does to bring out a new version, and start it again."""
    port = ports.application(deployment.variant)[0]
    own(deployment, port)
    name, pid = next(iter(_programs(deployment).items()))
    ended = tree(pid)
    control.stop(name)
    control.start(name)
    _until(lambda: _serving(port) not in (None, *ended), f"{name} serves again")
    return ended


def stop_all(deployment: Deployment) -> set[int]:
    """Stop every server for a while."""
    for port in ports.application(deployment.variant):
        own(deployment, port)
    programs = _programs(deployment)
    ended = {member for pid in programs.values() for member in tree(pid)}
    control.stop(*programs)
    time.sleep(DOWN_S)
    control.start(*programs)
    readiness.wait(
        partial(readiness.everyone, deployment.variant, set()),
        until=time.monotonic() + BACK_S,
        alive=lambda: None,
    )
    return ended


def reload(deployment: Deployment) -> set[int]:
    """Have the proxy load its configuration again, three times in a row."""
    proxy = PROXIES[deployment.variant.proxy]
    # A pid of 0 is that of a program which does not run; to signal it would be to signal ourselves.
    pids = [one["pid"] for one in control.programs() if one["name"] == proxy.name and one["pid"]]
    if not pids:
        raise Unharmed(f"supervisord runs no {proxy.name}")
    for _ in range(RELOADS):
        _reload(proxy, pids[0])
        time.sleep(1)
    return set()


def _reload(proxy: Proxy, pid: int) -> None:
    """Have it load its configuration; ``Unharmed`` where no new worker shows that it has."""
    before = tree(pid)
    os.kill(pid, getattr(signal, proxy.reload))
    _until(lambda: bool(tree(pid) - before), f"{proxy.name} has new workers")


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("reload", "the proxy reloads its configuration, three times", reload),
        Fault("restart", "one server is stopped and started", restart_one),
        Fault("kill", "one server process is killed with -9", kill_one),
        Fault("down", f"all servers are stopped, for {DOWN_S:g} s", stop_all),
    )
}


def _programs(deployment: Deployment) -> dict[str, int]:
    """Return the server's programs as supervisord calls them, in their order, with their pids."""
    server = deployment.variant.server
    found = {
        f"{one['group']}:{one['name']}": int(one["pid"])
        for one in control.programs()
        if one["name"].rstrip("_0123456789") == server
    }
    if not found:
        raise Unharmed(f"supervisord knows of no {server}")
    return dict(sorted(found.items()))


def own(deployment: Deployment, port: int) -> int:
    """Return the pid of the process of ``deployment`` that serves on ``port``.

    Raises ``Unharmed`` where nobody does, or somebody else's: no fault may hit a stranger.
    """
    pid = _serving(port)
    if pid is None:
        raise Unharmed(f"nobody serves on port {port}")
    if pid not in tree(deployment.pid):
        raise Unharmed(f"pid {pid} serves on port {port} and is not the deployment's")
    return pid


def _serving(port: int) -> int | None:
    """Return the pid that ``/healthz`` gives on a server's own port; None while nobody does."""
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", "/healthz")
        return int(json.loads(connection.getresponse().read())["pid"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()


def _until(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + BACK_S
    while not condition():
        if time.monotonic() > until:
            raise Unharmed(f"not within {BACK_S:g} s: {what}")
        time.sleep(0.05)


def outcomes(deployment: Deployment, names: list[str]) -> Iterator[Outcome]:
    """Yield what each of the faults did, one after the other."""
    for name in names:
        yield outcome(deployment, FAULTS[name])
