"""What limits this machine: each limit with its value, the value needed and the command for it.

The list is that of "Maximum Throughput, 2012" (file handles, SYN and listen backlogs, CPU steal)
and what else has stopped or falsified a run. ``rows`` is pure; ``read`` asks the machine.
"""

import os
import resource
import shutil
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from bench import awake, interpreter, ports
from bench.environment import BACKLOG, ROOT, check_root, executables
from bench.errors import BadInput
from bench.supervise import BIN, remedy
from bench.variants import HEADLINE, VARIANTS

Verdict = Literal["ok", "advice", "prevents"]

FILES_NEEDED = 4096  # supervisord's minfds, and what it raises the servers' limit to
FILES_WISHED = 16384  # 5,000 sockets with both their ends and some room
PIPE_PAGES_NEEDED = 16384  # Linux's own default: 64 MiB of pipes for each user
DATAGRAMS_WISHED = 10  # Linux's own default; the inter-process layer uses no datagrams
PORTS_WISHED = 28000  # a connection per request at 300/s for 90 s, each a minute in TIME_WAIT
STEAL_MAX = 0.01
FOREIGN_CORES_MAX = 0.03
SLOWNESS_MAX = 1.1  # of this Python to the system's
CORES_WISHED = 2
_LOOK_S = 1.0


@dataclass(frozen=True)
class Process:
    """Another process that uses the CPU, in cores."""

    pid: int
    name: str
    cores: float


@dataclass(frozen=True)
class Facts:
    """What the machine says of itself; None where it does not say."""

    files_soft: int
    files_hard: int
    somaxconn: int | None
    syn_backlog: int | None
    port_range: tuple[int, int] | None
    tw_reuse: int | None
    time_wait: int
    pipe_pages: int | None  # 0 is no limit
    datagrams: int | None
    overcommit: int | None
    steal: float | None  # share of all cores' time, now
    cores: int
    governor: str | None
    kept_awake: bool  # idle processors, while something is measured
    slowness: float | None  # this Python's time to that of the system's
    busy: tuple[Process, ...]
    ports_held: dict[int, str]
    missing: dict[str, str]  # program -> how to get it
    socket_root: str  # empty, or why sockets in run/ cannot be bound


@dataclass(frozen=True)
class Row:
    """One limit. ``prevents``: no campaign, or no honest one, until it is changed."""

    name: str
    present: str
    needed: str
    verdict: Verdict
    command: str | None = None  # where the verdict is not "ok"


def rows(facts: Facts) -> tuple[Row, ...]:
    """Return a row for each limit."""
    return (*_kernel_rows(facts), *_cpu_rows(facts), *_start_rows(facts))


def prevented(found: Collection[Row]) -> bool:
    """Whether any of the rows prevents a campaign."""
    return any(row.verdict == "prevents" for row in found)


def _row(
    name: str, present: object, needed: str, ok: bool, command: str, *, prevents: bool = False
) -> Row:
    verdict: Verdict = "ok" if ok else "prevents" if prevents else "advice"
    shown = "unknown" if present is None else str(present)
    return Row(name, shown, needed, verdict, None if ok else command)


def _at_least(name: str, present: int | None, needed: int, key: str) -> Row:
    ok = present is None or present >= needed
    return _row(name, present, f">= {needed}", ok, f"sysctl -w {key}={needed}")


def _kernel_rows(facts: Facts) -> tuple[Row, ...]:
    span = facts.port_range[1] - facts.port_range[0] + 1 if facts.port_range else None
    return (
        _row(
            "file handles, hard",
            _files(facts.files_hard),
            f">= {FILES_WISHED}",
            _enough(facts.files_hard, FILES_WISHED),
            f"echo '* hard nofile {FILES_WISHED}' >> /etc/security/limits.conf, and log in again",
            prevents=not _enough(facts.files_hard, FILES_NEEDED),
        ),
        _row(
            "file handles, soft",
            _files(facts.files_soft),
            f">= {FILES_NEEDED}",
            _enough(facts.files_soft, FILES_NEEDED),
            f"ulimit -n {FILES_NEEDED}",
        ),
        _at_least("somaxconn", facts.somaxconn, BACKLOG, "net.core.somaxconn"),
        _at_least("SYN backlog", facts.syn_backlog, BACKLOG, "net.ipv4.tcp_max_syn_backlog"),
        _row(
            "local ports",
            span,
            f">= {PORTS_WISHED}",
            span is None or span >= PORTS_WISHED,
            "sysctl -w net.ipv4.ip_local_port_range='32768 60999'",
        ),
        _time_wait_row(facts, span),
        _row(
            "pipe pages for each user",
            "no limit" if facts.pipe_pages == 0 else facts.pipe_pages,
            f">= {PIPE_PAGES_NEEDED}",
            not facts.pipe_pages or facts.pipe_pages >= PIPE_PAGES_NEEDED,
            f"sysctl -w fs.pipe-user-pages-soft={PIPE_PAGES_NEEDED}",
        ),
        _at_least("datagrams queued", facts.datagrams, DATAGRAMS_WISHED, "net.unix.max_dgram_qlen"),
        _row(
            "memory overcommit (Redis)",
            facts.overcommit,
            "1",  # Redis warns of anything else; one that saves nothing does well without
            facts.overcommit in (None, 1),
            "sysctl -w vm.overcommit_memory=1",
        ),
    )


def _enough(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed


def _files(limit: int) -> str:
    return "no limit" if limit == resource.RLIM_INFINITY else str(limit)


def _time_wait_row(facts: Facts, span: int | None) -> Row:
    """Connections in TIME_WAIT hold local ports, unless the kernel may take them again (1 or 2)."""
    crowded = span is not None and facts.time_wait > span // 2
    return _row(
        "connections in TIME_WAIT",
        f"{facts.time_wait}, tcp_tw_reuse={facts.tw_reuse}",
        f"< {span // 2}" if span else "few",
        not crowded or facts.tw_reuse in (1, 2),
        "wait a minute, or sysctl -w net.ipv4.tcp_tw_reuse=1",
        prevents=crowded,
    )


def _cpu_rows(facts: Facts) -> tuple[Row, ...]:
    steal = None if facts.steal is None else f"{facts.steal:.1%}"
    foreign = sum(one.cores for one in facts.busy)
    busiest = ", ".join(f"{one.name} (pid {one.pid}) {one.cores:.2f}" for one in facts.busy[:3])
    pids = ",".join(str(one.pid) for one in facts.busy[:3])
    return (
        _row(
            "cores",
            facts.cores,
            f">= {CORES_WISHED}",
            facts.cores >= CORES_WISHED,
            "a machine with more: server and generator share this one",
        ),
        _row(
            "CPU steal, now",
            steal,
            f"< {STEAL_MAX:.0%}",
            facts.steal is None or facts.steal < STEAL_MAX,
            "another host: a neighbour on this one takes the time",
        ),
        _row(
            "CPU governor",
            facts.governor or "none",
            "performance",
            facts.governor in (None, "performance"),
            "cpupower frequency-set --governor performance",
        ),
        _row(
            "idle processors, measuring",
            "kept awake" if facts.kept_awake else "go to sleep",
            "kept awake",
            facts.kept_awake,
            f"measure as root, who alone may write to {awake.DEVICE}",
        ),
        _row(
            "Python",
            _python(facts.slowness),
            f"no slower than {interpreter.SYSTEM}",
            facts.slowness is None or facts.slowness < SLOWNESS_MAX,
            f"make clean && make env PYTHON={interpreter.SYSTEM}, or one configured with "
            "--enable-optimizations",
        ),
        _row(
            "other processes, cores",
            f"{foreign:.2f}" + (f": {busiest}" if busiest else ""),
            f"< {FOREIGN_CORES_MAX}",
            foreign < FOREIGN_CORES_MAX,
            f"end them, or wait for them: ps -fp {pids}",
        ),
    )


def _python(slowness: float | None) -> str:
    told = interpreter.description()
    if slowness is None:
        return told
    return f"{told}: {slowness:.2f} times the time of {interpreter.SYSTEM} for the same work"


def _start_rows(facts: Facts) -> tuple[Row, ...]:
    """What a variant needs to start at all."""
    held = (
        _row(f"port {port}", f"held by {who}", "free", False, "stop that process", prevents=True)
        for port, who in facts.ports_held.items()
    )
    missing = (
        _row(program, "missing", "installed", False, how, prevents=True)
        for program, how in facts.missing.items()
    )
    root = facts.socket_root
    return (
        *held,
        *missing,
        _row("path of the project", root or "short enough", "short enough", not root,
             "move the project to a shorter path", prevents=True),
    )  # fmt: skip


def read() -> Facts:
    """Return the facts of this machine, after a second's look at its CPUs."""
    files_soft, files_hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    span = (_text("/proc/sys/net/ipv4/ip_local_port_range") or "").split()
    steal, busy = _looked_at()
    return Facts(
        files_soft=files_soft,
        files_hard=files_hard,
        somaxconn=_number("/proc/sys/net/core/somaxconn"),
        syn_backlog=_number("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
        port_range=(int(span[0]), int(span[1])) if span else None,
        tw_reuse=_number("/proc/sys/net/ipv4/tcp_tw_reuse"),
        time_wait=_time_wait(),
        pipe_pages=_number("/proc/sys/fs/pipe-user-pages-soft"),
        datagrams=_number("/proc/sys/net/unix/max_dgram_qlen"),
        overcommit=_number("/proc/sys/vm/overcommit_memory"),
        steal=steal,
        cores=len(os.sched_getaffinity(0)),
        governor=_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        kept_awake=_kept_awake(),
        slowness=interpreter.slowness(),
        busy=busy,
        ports_held=_held({ports.front(variant) for variant in HEADLINE}),
        missing=_missing(),
        socket_root=_too_long(),
    )


def _kept_awake() -> bool:
    with awake.processors():
        return awake.kept()


def _text(path: str) -> str | None:
    """Return what is in a file of the kernel; None where this kernel has no such file."""
    try:
        return Path(path).read_text().strip()
    except (FileNotFoundError, PermissionError):
        return None


def _number(path: str) -> int | None:
    text = _text(path)
    return None if text is None else int(text)


def _time_wait() -> int:
    status = psutil.CONN_TIME_WAIT
    return sum(one.status == status for one in psutil.net_connections(kind="tcp"))


def _looked_at() -> tuple[float | None, tuple[Process, ...]]:
    """Return the share of stolen time and the processes that used the CPU, busiest first."""
    before, start = psutil.cpu_times(), time.monotonic()
    processes = list(psutil.process_iter(["name"]))
    used_before = {one.pid: _used_s(one) for one in processes}
    time.sleep(_LOOK_S)
    wall_s = time.monotonic() - start
    after = psutil.cpu_times()
    total = sum(after) - sum(before)
    steal = (after.steal - before.steal) / total if hasattr(after, "steal") and total else None
    busy = (
        Process(one.pid, one.info["name"], (_used_s(one) - used_before[one.pid]) / wall_s)
        for one in processes
        if one.pid != os.getpid()
    )
    return steal, tuple(sorted((one for one in busy if one.cores >= 0.01), key=_by_cores))


def _by_cores(process: Process) -> float:
    return -process.cores


def _used_s(process: psutil.Process) -> float:
    """Return the CPU time of ``process`` so far; 0 once it has gone, so that it counts for none."""
    try:
        times = process.cpu_times()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0.0
    return float(times.user + times.system)


def _held(wanted: Collection[int]) -> dict[int, str]:
    """Return who holds those of the ports that somebody holds."""
    return {port: ports.holder(port) for port in wanted if not ports.is_free(port)}


def _missing() -> dict[str, str]:
    """Return the servers that some variant starts and that are not there, with the remedy."""
    path = f"{BIN}:{os.environ.get('PATH', os.defpath)}"
    # A missing proxy stops only the variants that have it in front, and they say so.
    direct = [variant for variant in VARIANTS.values() if variant.proxy == "direct"]
    names = {name for variant in direct for name in executables(variant)}
    return {name: remedy(name) for name in sorted(names) if shutil.which(name, path=path) is None}


def _too_long() -> str:
    try:
        check_root(ROOT)
    except BadInput as error:
        return str(error)
    return ""
