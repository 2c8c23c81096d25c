"""When a deployment is ready: when it answers correctly, as the variant it should be.

An open port proves nothing: supervisord binds the sockets of some variants itself, so that a
connection succeeds while every process behind it is dead.
"""

import http.client
import json
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from bench import ports
from bench.environment import HOST
from bench.variants import Variant

_REPLY_S = 6.0  # above the 5 s after which the relay itself answers 504
_PAUSE_S = 0.02


class NotReady(Exception):  # noqa: N818 - it says how things stand
    """Not yet; the text says what is missing."""


class Wrong(Exception):  # noqa: N818
    """It answers, and it will never be the variant asked for."""


def identity(variant: Variant, ours: Callable[[], Collection[int]]) -> dict[str, Any]:
    """Return what the deployment says it is, once; ``ours`` returns the pids that belong to it.

    Raises ``NotReady``, or ``Wrong`` where waiting longer is of no use.
    """
    port = ports.front(variant)
    status, _, body = _get("/healthz", port)
    if status != 200:
        raise NotReady(f"/healthz answers {status}")
    told = _object(body)
    differences = mismatches(variant, told)
    if differences:
        raise Wrong("the server is not the variant: " + ", ".join(differences))
    if told.get("pid") not in ours():
        raise Wrong(f"pid {told.get('pid')} answers on port {port} and is not ours")
    return told


def _object(body: bytes) -> dict[str, Any]:
    """Return the JSON object that ``body`` is; raise ``Wrong`` where it is none."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Wrong(f"/healthz is not a JSON object: {body[:80]!r}")
    return found


def everyone(variant: Variant, seen: set[int]) -> None:
    """Return when as many processes as there should be have answered; ``seen`` collects them.

    Raises ``NotReady``. Connections of the same moment reach several processes; one after another
    they may all reach the same. Processes that share a socket are asked there: a proxy in front
    keeps a few connections open, and they may all be to the same.
    """
    processes = variant.processes
    if processes == 1:
        return
    port = ports.front(variant) if variant.sharing == "ports" else ports.application(variant)[0]
    with ThreadPoolExecutor(4 * processes) as clients:
        answers = list(clients.map(partial(_get, port=port), ["/healthz"] * 4 * processes))
    seen |= {json.loads(body)["pid"] for status, _, body in answers if status == 200}
    if len(seen) < processes:
        raise NotReady(f"{len(seen)} of {processes} server processes have answered")


def mismatches(variant: Variant, told: dict[str, Any]) -> list[str]:
    """Return a phrase for each part of ``told`` that is not as ``variant`` has it."""
    # Only the projects of other stacks say theirs, and those know none of the other choices.
    told = {"stack": "today", "handler": "django", "delivery": "hub"} | told
    wanted = {
        "server": variant.server,
        "interface": variant.interface,
        "layer": variant.layer,
        "middleware": variant.middleware,
        "settings": variant.settings,
        "stack": variant.stack,
        "handler": variant.handler,
        "delivery": variant.delivery,
    }
    return [
        f"{key} is {told.get(key)!r} and should be {value!r}"
        for key, value in wanted.items()
        if told.get(key) != value
    ]


def relay(variant: Variant, ours: Callable[[], Collection[int]]) -> None:
    """Return when a worker of ours answers through the channel layer; raise ``NotReady``."""
    status, headers, body = _get("/relay/", ports.front(variant))
    pid = headers.get("x-worker-pid")
    if status != 200 or pid is None:
        raise NotReady(f"/relay/ answers {status}: {body.decode(errors='replace').strip()}")
    if int(pid) not in ours():
        raise Wrong(f"worker {pid} answers on the channel layer and is not ours")


def wait(check: Callable[[], Any], until: float, alive: Callable[[], None]) -> Any:
    """Return what ``check`` returns as soon as it does; ``alive`` raises where nothing will come.

    Raises ``NotReady`` with the last reason when ``until`` (of ``time.monotonic``) has passed.
    """
    while True:
        alive()
        try:
            return check()
        except NotReady:
            if time.monotonic() > until:
                raise
        time.sleep(_PAUSE_S)


def _get(path: str, port: int) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(HOST, port, timeout=_REPLY_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return response.status, headers, response.read()
    except (OSError, http.client.HTTPException) as error:
        raise NotReady(f"GET {path}: {error or type(error).__name__}") from error
    finally:
        connection.close()
