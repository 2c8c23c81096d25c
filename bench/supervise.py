"""Starts variants under supervisord and stops them: what is yielded is ready, what ends is gone."""

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from bench import ports, proxies, readiness, remains
from bench.control import programs, supervisord_pid
from bench.environment import HOST, ROOT, STOP_S, check_root, environment, executables
from bench.errors import BadInput
from bench.swarm import deployment as swarm
from bench.swarm.engine import EngineFailed
from bench.variants import STACKS, Variant

BIN = Path(sys.executable).parent
START_S = 40.0  # a machine that is busy with other things still makes it
_START_LOG = remains.LOGS / "start.log"

# All that a deployment takes from the shell it was started in. The rest of it (GUNICORN_CMD_ARGS,
# WEB_CONCURRENCY, UVICORN_*, GRANIAN_*, PYTHON*) would change what is measured without a trace.
_KEPT = frozenset(
    ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
) | {"CHANNELS_IPC_DIRECTORY", "DJANGO_ALLOWED_HOSTS", "PYTHONDONTWRITEBYTECODE"}


class StartFailed(RuntimeError):  # noqa: N818 - the sentence it makes with raise
    """A variant did not become ready: ``reason`` in one line, and the end of its logs."""

    def __init__(self, reason: str, log_tail: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.log_tail = log_tail


@dataclass(frozen=True)
class Deployment:
    """A variant that serves. ``pid`` is supervisord's, the root of the whole process tree."""

    variant: Variant
    identity: dict[str, Any]  # what /healthz said when it became ready
    pid: int
    tail: Callable[[int], str] = remains.log_tail

    @property
    def base_url(self) -> str:
        """Where clients go: the proxy, where there is one."""
        return f"http://{HOST}:{ports.front(self.variant)}"

    @property
    def websocket_url(self) -> str:
        return f"ws://{HOST}:{ports.front(self.variant)}"

    def log_tail(self, lines: int = 40) -> str:
        """Return the last ``lines`` lines of each program's log."""
        return self.tail(lines)


@contextmanager
def deployed(
    variant: Variant,
    *,
    cpus: Collection[int] | None = None,
    start_s: float = START_S,
    switches: Mapping[str, str] | None = None,
) -> Iterator[Deployment]:
    """Run ``variant`` on the CPUs ``cpus``; yield it when it is ready, and stop all of it after.

    Its processes find ``switches`` in their environment, too: what no variant says.
    Nothing outlives the block: not after an exception, not after Ctrl-C, and where the calling
    process is killed, its end makes supervisord stop everything. To be entered in a thread that
    lives as long as the block. Raises ``BadInput`` where a person must do something first, and
    ``StartFailed`` where the variant does not become ready within ``start_s`` seconds.
    """
    if variant.proxy == "swarm":
        with _deployed_in_swarm(variant, cpus) as deployment:
            yield deployment
        return
    with remains.claimed():
        process = _start(variant, cpus, dies_with_us=True, switches=switches or {})
        try:
            yield _ready(variant, process, start_s)
        finally:
            stop(process)


@contextmanager
def _deployed_in_swarm(variant: Variant, cpus: Collection[int] | None) -> Iterator[Deployment]:
    """Do the same in containers, by an engine that is started for them."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(swarm.running(variant, cpus=cpus))
        except EngineFailed as failure:
            raise StartFailed(f"{variant.name}: {failure}", failure.log_tail) from failure
        deployed_stack, identity = running
        pid = deployed_stack.engine.pid
        yield Deployment(variant, identity, pid, tail=deployed_stack.log_tail)


def up(variant: Variant, *, start_s: float = START_S) -> Deployment:
    """Start ``variant`` and leave it running; raise as ``deployed`` does."""
    with remains.claimed():
        process = _start(variant, None, dies_with_us=False, switches={})
        try:
            return _ready(variant, process, start_s)
        except BaseException:
            stop(process)
            raise


def down() -> str | None:
    """Stop what runs in this checkout, whoever started it; return its variant's name.

    Returns None where nothing ran. A deployment started by hand has no name: ``supervisord``.
    """
    with remains.claimed():
        pid = supervisord_pid()
        name = remains.noted_variant()
        if pid is not None:
            _end(pid)
        left = remains.sweep()
        return (name or "supervisord") if pid is not None or left else None


def _start(
    variant: Variant,
    cpus: Collection[int] | None,
    *,
    dies_with_us: bool,
    switches: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    require(variant, os.environ)
    remains.clear_logs()
    proxies.write(variant, remains.RUN)
    token = {remains.VARIABLE: remains.note(variant.name)}
    with _START_LOG.open("wb") as log:
        return subprocess.Popen(
            command(cpus, dies_with_us=dies_with_us),
            cwd=ROOT,
            env={**process_environment(variant, os.environ), **switches, **token},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for us: we stop it in order
        )


def require(variant: Variant, shell: Mapping[str, str]) -> None:
    """Raise ``BadInput`` where ``variant`` cannot be started as things are.

    Kills what a deployment that crashed has left.
    """
    if variant.proxy == "swarm":
        swarm.require()
        return
    check_root()
    if lacking := missing(variant, shell):
        raise BadInput(lacking)
    pid = supervisord_pid()
    if pid is not None:
        name = remains.noted_variant() or "a supervisord started by hand"
        raise BadInput(f"{name} is up (pid {pid}): python -m bench down stops it")
    remains.sweep()
    for port in {ports.front(variant), *ports.application(variant)}:
        ports.require_free(port)


def missing(variant: Variant, shell: Mapping[str, str]) -> str | None:
    """Return what ``variant`` needs and this machine does not have, with the remedy."""
    if not stack_bin(variant).is_dir():
        return f"{variant.name} needs an environment of its own: {STACKS[variant.stack].made_by}"
    for name in ("setpriv", "taskset", *executables(variant, redis_url=shell.get("REDIS_URL"))):
        if shutil.which(name, path=_search_path(variant, shell)) is None:
            return f"{name} is missing: {remedy(name)}"
    return None


_REMEDIES = {
    "redis-server": "apt-get install redis-server, or set REDIS_URL to a Redis that runs",
    "nginx": "apt-get install nginx",
    "haproxy": "apt-get install haproxy",
    "apache2": "apt-get install apache2",
    "setpriv": "apt-get install util-linux",
    "taskset": "apt-get install util-linux",
}


def remedy(program: str) -> str:
    """Return how to get a ``program`` that a variant starts."""
    return _REMEDIES.get(program, "pip install -r requirements.txt")


def command(cpus: Collection[int] | None, *, dies_with_us: bool) -> tuple[str, ...]:
    """Return the command line of supervisord; what it starts inherits the CPUs it is given."""
    pinned = ("taskset", "--cpu-list", ",".join(map(str, sorted(cpus)))) if cpus else ()
    tied = ("setpriv", "--pdeathsig", "TERM") if dies_with_us else ()
    # supervisord warns a root that named no user. This one means to be root: it says so.
    user = ("--user", "0") if os.geteuid() == 0 else ()
    configuration = ("--configuration", str(ROOT / "supervisord.conf"))
    return (
        *pinned,
        *tied,
        str(BIN / "supervisord"),
        "--nodaemon",
        "--silent",
        *configuration,
        *user,
    )


def process_environment(variant: Variant, shell: Mapping[str, str]) -> dict[str, str]:
    """Return all that the processes of ``variant`` find in their environment."""
    kept = {name: value for name, value in shell.items() if name in _KEPT}
    return kept | exports(variant, shell)


def exports(variant: Variant, shell: Mapping[str, str]) -> dict[str, str]:
    """Return what supervisord needs in its environment on this machine to run ``variant``."""
    return environment(variant, redis_url=shell.get("REDIS_URL")) | {
        "PATH": _search_path(variant, shell),
        "DJANGO_SECRET_KEY": secrets.token_urlsafe(50),
    }


def search_path_for_others(variant: Variant) -> str:
    """Return where the servers' programs are, as a configuration for another machine says it."""
    folder = stack_bin(variant)
    inside = folder.is_relative_to(ROOT)
    return f"%(here)s/{folder.relative_to(ROOT)}" if inside else str(folder)


def stack_bin(variant: Variant) -> Path:
    """Return the folder that the programs of the variant's stack are in."""
    environment = STACKS[variant.stack].environment
    return ROOT / environment / "bin" if environment else BIN


def _search_path(variant: Variant, shell: Mapping[str, str]) -> str:
    # Debian keeps proxies in /usr/sbin, which is on root's path alone.
    return f"{stack_bin(variant)}:{shell.get('PATH', os.defpath)}:/usr/sbin"


def _ready(variant: Variant, process: subprocess.Popen[bytes], start_s: float) -> Deployment:
    until = time.monotonic() + start_s
    ours = partial(tree, process.pid)
    wait = partial(readiness.wait, until=until, alive=partial(require_alive, process))
    try:
        told = wait(partial(readiness.identity, variant, ours))
        wait(partial(readiness.everyone, variant, set()))
        if variant.has_worker:
            wait(partial(readiness.relay, variant, ours))
    except (readiness.NotReady, readiness.Wrong) as error:
        raise StartFailed(f"{variant.name}: {error}", remains.log_tail()) from error
    return Deployment(variant, told, process.pid)


def tree(pid: int) -> set[int]:
    """Return the pids of the process ``pid`` and all its descendants."""
    try:
        root = psutil.Process(pid)
        return {pid, *(child.pid for child in root.children(recursive=True))}
    except psutil.NoSuchProcess:
        return set()


def require_alive(process: subprocess.Popen[bytes]) -> None:
    """Raise ``readiness.Wrong`` where supervisord or one of its programs has given up."""
    if process.poll() is not None:
        raise readiness.Wrong(f"supervisord ended with {process.returncode}")
    for program in programs():
        if program["statename"] in ("BACKOFF", "FATAL", "EXITED"):
            raise readiness.Wrong(f"{program['name']} ended: {program['spawnerr']}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a supervisord that this process has started, and whatever it leaves.

    Ctrl-C does not cut that short: it is raised when everything is gone.
    """
    try:
        _end(process.pid)
    except KeyboardInterrupt:
        _end(process.pid)
        raise
    finally:
        process.wait()
        remains.sweep()


def _end(pid: int) -> None:
    """End supervisord: asked first, so that it stops its programs, and then made to."""
    try:
        supervisord = psutil.Process(pid)
        supervisord.terminate()
        supervisord.wait(STOP_S + 5)
    except psutil.TimeoutExpired:
        supervisord.kill()
    except psutil.NoSuchProcess:
        return
