"""Everything needed to repeat a campaign, and nothing about whose machine it ran on.

Paths are relative to the project; ``anonymous`` removes what slips in through log lines and
command lines: the project's own path, the home directory and the host's name.
"""

import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import psutil

from bench import awake, interpreter

PROJECT = Path(__file__).resolve().parent.parent

# Programs that are not Python packages: how each tells its version.
_PROGRAMS = {
    "redis-server": ("--version",),
    "nginx": ("-v",),
    "haproxy": ("-v",),
    "apache2": ("-v",),
    "uwsgi": ("--version",),
}
# What the requirements pull in and every request goes through; the commit pins the rest.
_UNDERNEATH = ("asgiref", "autobahn", "gevent", "Twisted")
_SYSCTLS = (
    "fs.file-max",
    "fs.pipe-max-size",
    "fs.pipe-user-pages-soft",
    "kernel.sched_autogroup_enabled",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.unix.max_dgram_qlen",
)
_LIMITS = {
    "open files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "core file size": resource.RLIMIT_CORE,
}
_CPU_FREQUENCY = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


@dataclass(frozen=True)
class Pinning:
    """Which processors each side may run on; None: all of them."""

    server: tuple[int, ...] | None
    generator: tuple[int, ...] | None

    @property
    def server_cores(self) -> int:
        return len(self.server or os.sched_getaffinity(0))


def pinning(cpus: Collection[int], siblings: Sequence[Collection[int]] = ()) -> Pinning:
    """Return how to share ``cpus``: the first core for the generator, the rest for the server.

    The first, because that is where the kernel does most of its housekeeping and where interrupts
    go by default: the server, whose time is the result, shall not share it. ``siblings`` are the
    processors that share a core; while there is another core, the server gets none of those that
    the generator's core has. On a single processor nothing can be kept apart.
    """
    ordered = sorted(cpus)
    if len(ordered) < 2:
        return Pinning(None, None)
    first = ordered[0]
    core = {first}.union(*(group for group in siblings if first in group))
    rest = [cpu for cpu in ordered if cpu not in core]
    return Pinning(tuple(rest or ordered[1:]), (first,))


def siblings() -> list[set[int]]:
    """Return the processors of each physical core, empty where the kernel does not tell."""
    lists = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")
    return [_cpu_list(path.read_text()) for path in lists]


def _cpu_list(text: str) -> set[int]:
    """Return the numbers in a list such as ``0-1,8``."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def provenance(*, pinned: Pinning, seed: int, command: Sequence[str]) -> dict[str, Any]:
    """Return what a reader needs to judge the figures and to take them again."""
    return {"command": list(anonymous(tuple(command))), "seed": seed} | circumstances(pinned)


def circumstances(pinned: Pinning) -> dict[str, Any]:
    """Return what is measured, with what and on what: the same for figures that belong together."""
    return {
        "commit": commit(),
        "uncommitted_changes": uncommitted_changes(),
        "versions": versions(),
        "machine": machine(pinned),
        "sysctls": sysctls(),
        "limits": {name: _limit(which) for name, which in _LIMITS.items()},
        "pinning": {
            "server": _cpus(pinned.server),
            "generator": _cpus(pinned.generator),
        },
    }


def _cpus(cpus: tuple[int, ...] | None) -> str | None:
    return None if cpus is None else ",".join(map(str, cpus))


def versions() -> dict[str, str]:
    """Return the version of every requirement and of every program a variant may start."""
    found = {"python": anonymous(interpreter.description())}
    for name in (*requirements(), *_UNDERNEATH):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # the Python that runs this is not the project's own: `bench check` says so
    for program in _PROGRAMS:
        if (stated := _program_version(program)) is not None:
            found[program] = stated
    return found


def requirements() -> list[str]:
    """Return the names of the packages that serve and measure; those that check do not matter."""
    text, _, _ = (PROJECT / "requirements.txt").read_text().partition("# What checks")
    return re.findall(r"^([\w.-]+)(?:\[\w+\])?==", text, re.MULTILINE)


def _program_version(program: str) -> str | None:
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        return None
    done = subprocess.run(  # some tell on standard error
        [path, *_PROGRAMS[program]],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=10,
    )
    number = re.search(r"\d+\.\d+[\w.+-]*", done.stdout)
    return number.group() if number else None


def commit() -> str | None:
    """Return the commit the project stands at, None outside of a git work tree."""
    stated = _git("rev-parse", "HEAD")
    return stated.strip() if stated is not None else None


def uncommitted_changes() -> bool | None:
    """Return whether files differ from the commit, None outside of a git work tree.

    Campaigns under ``results/`` are left out: what was measured changes nothing that measures.
    """
    stated = _git("status", "--porcelain", "--", ".", ":(exclude)results/[0-9]*")
    return bool(stated.strip()) if stated is not None else None


def _git(*arguments: str) -> str | None:
    try:
        return subprocess.run(
            ["git", "-C", PROJECT, *arguments],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=30,
        ).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None


def machine(pinned: Pinning) -> dict[str, Any]:
    """Return the processor, memory and kernel."""
    # This process may be kept to the generator's share already.
    usable = os.sched_getaffinity(0).union(pinned.server or (), pinned.generator or ())
    return {
        "cpu": _cpu_model(),
        "cores": psutil.cpu_count(logical=False),
        "processors": psutil.cpu_count(),
        "usable_processors": len(usable),
        "idle_processors": "awake" if awake.kept() else "asleep",
        "governor": _CPU_FREQUENCY.read_text().strip() if _CPU_FREQUENCY.exists() else None,
        "virtual": "hypervisor" in _cpuinfo().get("flags", "").split(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": f"{platform.system()} {platform.release()}",
        "system": _os_release().get("PRETTY_NAME"),
        "architecture": platform.machine(),
    }


def described(machine: dict[str, Any]) -> str:
    """Return what a report says of the machine before its figures."""
    # The first campaigns do not say it.
    kept = ", kept awake" if machine.get("idle_processors") == "awake" else ""
    return f"{machine['cpu']}, {machine['usable_processors']} processors{kept}, {machine['kernel']}"


def _cpu_model() -> str | None:
    return _cpuinfo().get("model name") or platform.processor() or None


@cache
def _cpuinfo() -> dict[str, str]:
    """Return what ``/proc/cpuinfo`` says of the first processor."""
    first = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def sysctls() -> dict[str, str]:
    """Return the kernel's settings that bound a server, those that this kernel has."""
    found = {}
    for name in _SYSCTLS:
        path = Path("/proc/sys", *name.split("."))
        if path.exists():
            found[name] = " ".join(path.read_text().split())
    return found


def _limit(which: int) -> list[int | None]:
    """Return the soft and the hard limit, None for one that is not limited."""
    return [None if one == resource.RLIM_INFINITY else one for one in resource.getrlimit(which)]


def command_line() -> list[str]:
    """Return the command that started this process, as a person would type it."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return ["python", "-m", program.parent.name, *sys.argv[1:]]
    return [program.name, *sys.argv[1:]]


T = TypeVar("T")


def anonymous(value: T) -> T:
    """Return ``value`` (text, or lists and dicts of it) without what names this machine."""
    if isinstance(value, str):
        return _anonymous_text(value)  # type: ignore[return-value]
    if isinstance(value, dict):
        return {key: anonymous(one) for key, one in value.items()}  # type: ignore[return-value]
    if isinstance(value, list | tuple):
        return type(value)(anonymous(one) for one in value)
    return value


def _anonymous_text(text: str) -> str:
    text = _without(text, f"{PROJECT}{os.sep}", "")
    text = _without(text, str(PROJECT), ".")
    home = str(Path.home())
    if home != "/":
        text = _without(text, home, "~")
    host = socket.gethostname()
    if host not in ("", "localhost"):
        # A whole word: a host called "vm" is not what vm.swappiness is named after.
        text = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)", "host", text)
    return text


def _without(text: str, path: str, instead: str) -> str:
    """Return ``text`` with ``path`` replaced where it is one, and not a part of a longer name."""
    after = "" if path.endswith(os.sep) else r"(?![\w.-])"
    return re.sub(rf"(?<![\w.-]){re.escape(path)}{after}", instead, text)
