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

from websockets.exceptions import WebSocketException

from bench import control, ports, readiness
from bench.environment import HOST
from bench.faults.traffic import Seen, observed
from bench.proxies import PROXIES
from bench.supervise import Deployment

BEFORE_S, AFTER_S = 0.5, 2.0
DOWN_S = 2.0
BACK_S = 30.0  # within which what was stopped must serve again, on a busy machine
RELOADS = 3


class Unharmed(RuntimeError):  # noqa: N818
    """The fault could not be brought about: there is nothing to say about it."""


_OBSTACLES = (Unharmed, OSError, WebSocketException, readiness.NotReady, xmlrpc.client.Error)


@dataclass(frozen=True)
class Outcome:
    """What a fault did. Sockets that ended count as ``inevitable`` where their process was killed
    or stopped, since no proxy can move a socket; None where that could not be told."""

    variant: str
    fault: str
    requests: int
    results: dict[str, int]  # "ok" and every kind of failure, how often
    slowest_ms: float
    slowest_failure_ms: float | None  # None: no request failed
    failing_s: float | None  # from the fault to the last request that failed; None: none did
    sockets: int
    sockets_ended: dict[str, int]  # how, and how many
    sockets_inevitable: int | None
    messages: int
    messages_wrong: int

    @property
    def requests_lost(self) -> int:
        return self.requests - self.results.get("ok", 0)

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
    failed = seen.failed
    gone = [socket for socket in seen.sockets if socket.ended]
    told = all(socket.pid for socket in seen.sockets)
    ends = [socket.ended for socket in gone if socket.ended]
    return Outcome(
        variant=variant,
        fault=fault,
        requests=len(seen.requests),
        results=seen.results,
        slowest_ms=_ms(max(request.took_s for request in seen.requests)),
        slowest_failure_ms=_ms(max(request.took_s for request in failed)) if failed else None,
        failing_s=(
            round(max(one.sent_s + one.took_s for one in failed) - began_s, 2) if failed else None
        ),
        sockets=len(seen.sockets),
        sockets_ended={how: ends.count(how) for how in sorted(set(ends))},
        sockets_inevitable=sum(socket.pid in ended for socket in gone) if told else None,
        messages=sum(socket.returned for socket in seen.sockets),
        messages_wrong=sum(socket.wrong for socket in seen.sockets),
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def kill_one(deployment: Deployment) -> set[int]:
    """Kill a process that serves; supervisord, or its parent, starts another."""
    port = ports.application(deployment.variant)[0]
    pid = _serving(port)
    os.kill(pid, signal.SIGKILL)
    _until(lambda: _serving(port) not in (0, pid), "another process serves")
    return {pid}


def restart_one(deployment: Deployment) -> set[int]:
    """Stop a server as one does to bring out a new version, and start it again."""
    port = ports.application(deployment.variant)[0]
    pid, name = _serving(port), _names(deployment)[0]
    control.stop(name)
    control.start(name)
    _until(lambda: _serving(port) not in (0, pid), f"{name} serves again")
    return {pid}


def stop_all(deployment: Deployment) -> set[int]:
    """Stop every server for a while."""
    pids = {_serving(port) for port in ports.application(deployment.variant)}
    names = _names(deployment)
    control.stop(*names)
    time.sleep(DOWN_S)
    control.start(*names)
    readiness.wait(
        partial(readiness.everyone, deployment.variant, set()),
        until=time.monotonic() + BACK_S,
        alive=lambda: None,
    )
    return pids


def reload(deployment: Deployment) -> set[int]:
    """Have the proxy load its configuration again, three times in a row."""
    proxy = PROXIES[deployment.variant.proxy]
    pid = next(one["pid"] for one in control.programs() if one["name"] == proxy.name)
    for _ in range(RELOADS):
        os.kill(pid, getattr(signal, proxy.reload))
        time.sleep(1)
    return set()


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("reload", "the proxy reloads its configuration, three times", reload),
        Fault("restart", "one server is stopped and started", restart_one),
        Fault("kill", "one server process is killed with -9", kill_one),
        Fault("down", f"all servers are stopped, for {DOWN_S:g} s", stop_all),
    )
}


def _names(deployment: Deployment) -> list[str]:
    """Return the server's processes by the names that supervisord has for them, in their order."""
    server = deployment.variant.server
    found = [
        f"{one['group']}:{one['name']}"
        for one in control.programs()
        if one["name"].rstrip("_0123456789") == server
    ]
    if not found:
        raise Unharmed(f"supervisord knows of no {server}")
    return sorted(found)


def _serving(port: int) -> int:
    """Return the pid that ``/healthz`` gives on a server's own port; 0 while nobody answers."""
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", "/healthz")
        return int(json.loads(connection.getresponse().read())["pid"])
    except (OSError, http.client.HTTPException):
        return 0
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
