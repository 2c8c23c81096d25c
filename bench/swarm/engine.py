"""A Docker engine of the project's own, as one node of a Swarm that has no other."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench import ports
from bench.environment import HOST, ROOT
from bench.errors import BadInput
from bench.load import pinned
from bench.swarm import host
from bench.swarm.keeper import BRIDGE, DIFFERENCES, SOCKET

_START_S = 40.0
_STOP_S = 60.0  # the keeper's own limits add up to less
_COMMAND_S = 120.0
# Addresses that nobody has: from the block for tests of network devices (RFC 2544).
_BRIDGE_SUBNET = "198.18.0.0/24"
_OVERLAY_POOL = "198.19.0.0/16"


class EngineFailed(RuntimeError):  # noqa: N818 - the sentence it makes with raise
    """The engine did not do what it was asked; the end of its logs, where they say more."""

    def __init__(self, reason: str, log_tail: str = "") -> None:
        super().__init__(reason)
        self.log_tail = log_tail


@dataclass(frozen=True)
class Engine:
    """An engine that runs. ``pid`` is the keeper's, the root of all its processes."""

    folder: Path
    pid: int

    def docker(
        self,
        *arguments: str,
        variables: Mapping[str, str] | None = None,
        timeout_s: float = _COMMAND_S,
    ) -> str:
        """Run ``docker`` with ``arguments`` against this engine; return what it printed.

        It sees ``variables`` and no other of the shell's but where programs are. Raises
        ``EngineFailed``.
        """
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),  # no credentials and no context of the user's
            "DOCKER_HOST": f"unix://{self.folder / SOCKET}",
            **(variables or {}),
        }
        done = subprocess.run(
            ("docker", *arguments),
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        if done.returncode:
            raise EngineFailed(f"docker {' '.join(arguments[:3])}: {_last(done.stderr)}")
        return done.stdout

    def log_tail(self, lines: int = 40) -> str:
        """Return the end of what the engine has printed."""
        return "\n".join((self.folder / "log").read_text().splitlines()[-lines:])


def _last(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else "it failed without a word"


def require() -> None:
    """Raise ``BadInput`` where no engine can be started here as things are."""
    for program in ("dockerd", "containerd", "docker"):
        if shutil.which(program) is None:
            raise BadInput(
                f"no Docker engine is installed ({program} is missing): "
                "apt-get install docker.io, on Debian and Ubuntu"
            )
    if os.geteuid() != 0:
        raise BadInput("only root can start a Docker engine: sudo make swarm-test")
    if not host.firewalls():
        raise BadInput(
            "no program tells the firewall's rules, so that nobody could see a change of them: "
            "apt-get install iptables"
        )
    if (Path("/sys/class/net") / BRIDGE).exists():
        raise BadInput(f"the interface {BRIDGE} exists: this machine is in a Swarm already")
    for port in (ports.SWARM, ports.SWARM_MANAGER, ports.SWARM_GOSSIP):
        ports.require_free(port)


@contextmanager
def engine(cpus: Collection[int] | None = None) -> Iterator[Engine]:
    """Run an engine, on ``cpus`` if given, that is the one manager of a Swarm on loopback.

    Nothing of it is left when the block ends, whatever happens in it. Raises ``BadInput`` where a
    person must do something first, and ``EngineFailed`` where the engine does not start, or where
    the machine is not as it was when it has ended.
    """
    require()
    folder = Path(tempfile.gettempdir()) / f"channels-swarm-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    try:
        keeper = _keeper(folder, cpus)
        try:
            running = Engine(folder, keeper.pid)
            _wait(running, keeper)
            _join(running)
            yield running
        finally:
            _stop(keeper)
        _require_as_before(folder)
    finally:
        shutil.rmtree(folder)


def _keeper(folder: Path, cpus: Collection[int] | None) -> subprocess.Popen[bytes]:
    command = ("setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "bench.swarm.keeper")
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            pinned((*command, str(folder)), cpus),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for us: we stop it in order
        )


def _wait(running: Engine, keeper: subprocess.Popen[bytes]) -> None:
    def asked() -> bool:
        if keeper.poll() is not None:
            raise EngineFailed("the engine did not start", running.log_tail())
        with suppress(EngineFailed):
            running.docker("version")
            return True
        return False

    until(asked, _START_S, lambda: ("the engine does not answer", running.log_tail()))


def until(
    holds: Callable[[], bool], limit_s: float, complaint: Callable[[], tuple[str, str]]
) -> None:
    """Return when ``holds``; raise ``EngineFailed`` with the reason and log after ``limit_s``."""
    end_s = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end_s:
            raise EngineFailed(*complaint())
        time.sleep(0.1)


def _join(running: Engine) -> None:
    """Make the engine a Swarm of its own.

    The bridge that published ports come in by is made here, for the one that Swarm would make
    publishes them on every address of the machine.
    """
    options = {
        "com.docker.network.bridge.name": BRIDGE,
        "com.docker.network.bridge.enable_icc": "false",
        "com.docker.network.bridge.enable_ip_masquerade": "false",
        "com.docker.network.bridge.host_binding_ipv4": HOST,
    }
    given = [part for name, value in options.items() for part in ("--opt", f"{name}={value}")]
    running.docker("network", "create", "--subnet", _BRIDGE_SUBNET, *given, BRIDGE)
    listen = f"{HOST}:{ports.SWARM_MANAGER}"
    addresses = ("--advertise-addr", HOST, "--listen-addr", listen)
    running.docker("swarm", "init", *addresses, "--default-addr-pool", _OVERLAY_POOL)


def _stop(keeper: subprocess.Popen[bytes]) -> None:
    keeper.send_signal(signal.SIGTERM)
    try:
        keeper.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()


def _require_as_before(folder: Path) -> None:
    try:
        left = (folder / DIFFERENCES).read_text().splitlines()
    except FileNotFoundError:
        log = (folder / "log").read_text()[-4000:]
        raise EngineFailed("the engine was not ended in order", log) from None
    if left:
        raise EngineFailed("the machine is not as it was: " + "; ".join(left))
