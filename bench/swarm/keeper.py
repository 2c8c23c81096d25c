"""Keeps a container engine: starts it, waits to be told to stop, and leaves nothing of it.

    python -m bench.swarm.keeper FOLDER

A process of its own, so that the machine is put back even where whoever wanted the engine is
killed; and the parent of every process of the engine's, those in containers included, so that what
a deployment uses can be sampled from one root. Containers are reparented when the program that has
made them ends: to the next "subreaper", which is this process.

It writes FOLDER/differences when it has ended the engine: one line for everything on the machine
that is not as it was. No such file, no orderly end.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import psutil

from bench.swarm import host

BRIDGE = "docker_gwbridge"  # Docker's own name for the way out of an overlay network; a fixed one
DATA = "data"
SOCKET = "docker.sock"
DIFFERENCES = "differences"
_CONTAINERD_SOCKET = "containerd.sock"
# Where containerd and dockerd put something wherever all the rest is; what is below comes first.
_FIXED_FOLDERS = tuple(
    map(Path, ("/run/containerd/s", "/run/containerd", "/run/docker/plugins", "/run/docker"))
)
_START_S = 20.0
_STOP_S = 25.0  # the engine gives its containers 10 and 15
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h

# No CRI: that part is for Kubernetes, and opens a port.
_CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{folder}/{socket}"
"""


class Stop(Exception):  # noqa: N818 - a signal and no error
    """Somebody has told this process to end."""


def engine_command(folder: Path, cgroup: str) -> tuple[str, ...]:
    """Return the command line of dockerd: everything below ``folder``, and nothing of the host's.

    Without rules of its own for iptables, what is published goes through a program (docker-proxy),
    and containers cannot reach the outside. No default bridge: images are built with the host's
    network.
    """
    return (
        "dockerd",
        *("--data-root", str(folder / DATA)),
        *("--exec-root", str(folder / "exec")),
        *("--pidfile", str(folder / "dockerd.pid")),
        *("--host", f"unix://{folder / SOCKET}"),
        *("--containerd", str(folder / _CONTAINERD_SOCKET)),
        *("--config-file", str(folder / "daemon.json")),
        *("--cgroup-parent", f"/{cgroup}"),
        *("--bridge=none", "--iptables=false", "--ip6tables=false"),
        *("--ip-forward=false", "--ip-masq=false", "--userland-proxy=true"),
        *("--log-level", "warn"),
    )


def keep(folder: Path) -> None:
    """Run an engine in ``folder`` until told to stop."""
    _adopt_orphans()
    owner = os.getppid()
    before = host.read()
    folders = [path for path in _FIXED_FOLDERS if not path.exists()]
    cgroup = folder.name
    try:
        with _running(folder, cgroup) as started:
            _reap(started)
    except Stop:
        pass
    finally:
        _clear(folder, cgroup, folders)
        host.restore(before, frozenset((BRIDGE,)))
        left = host.differences(before, host.read())
        (folder / DIFFERENCES).write_text("".join(f"{line}\n" for line in left))
        if os.getppid() != owner:  # nobody is left to read it
            shutil.rmtree(folder)


def _adopt_orphans() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


@contextmanager
def _running(folder: Path, cgroup: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    (folder / "daemon.json").write_text("{}")
    config = folder / "containerd.toml"
    config.write_text(_CONTAINERD.format(folder=folder, socket=_CONTAINERD_SOCKET))
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(_start(("containerd", "--config", str(config), "--log-level", "warn")))
        _wait_for(folder / _CONTAINERD_SOCKET, started[0])
        started.append(_start(engine_command(folder, cgroup)))
        yield started
    finally:
        for process in reversed(started):
            _end(process)
        _end_orphans()


def _reap(started: Sequence[subprocess.Popen[bytes]]) -> NoReturn:
    """Wait for the orphans that end; raise ``RuntimeError`` when one of ``started`` does.

    Otherwise they would be there for ever, and be counted as processes.
    """
    while True:
        # Looked at and left: those of our own are waited for by their object.
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        assert ended, "it waits until there is one"
        for process in started:
            if process.pid == ended.si_pid:
                raise RuntimeError(f"{process.args!r} ended with {process.wait()}")
        os.waitpid(ended.si_pid, 0)


def _start(command: tuple[str, ...]) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C is for us, who end the engine in order.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_S
    while not path.exists():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{process.args!r} did not make {path}")
        time.sleep(0.02)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_orphans() -> None:
    """Kill what the engine has left, and wait for all that was given to us."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _clear(folder: Path, cgroup: str, fixed: Sequence[Path]) -> None:
    """Unmount what is mounted below ``folder``, and remove the data and the control groups.

    Of ``fixed``, the folders that were not there before, go those that nobody else uses by now.
    """
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mount in sorted(mounts, reverse=True):
        if Path(mount).is_relative_to(folder):
            subprocess.run(("umount", "--lazy", mount), check=True)
    for name in (DATA, "exec", "containerd", "containerd-state"):
        if (folder / name).exists():
            shutil.rmtree(folder / name)
    for group in _control_groups(cgroup):
        group.rmdir()
    for path in fixed:
        with suppress(OSError):  # it is not empty, so somebody uses it; or it was never made
            path.rmdir()


def _control_groups(cgroup: str) -> list[Path]:
    """Return the control groups of that name and below, in the order in which they can go."""
    roots = [*Path("/sys/fs/cgroup").glob(cgroup), *Path("/sys/fs/cgroup").glob(f"*/{cgroup}")]
    below = [path for root in roots for path in root.rglob("*") if path.is_dir()]
    return sorted({*roots, *below}, key=lambda path: -len(path.parts))


def _stop(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # being told once is enough
    raise Stop


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep(Path(sys.argv[1]))
