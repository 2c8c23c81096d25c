"""What a deployment may leave behind, and how it is found again: a token in each process.

supervisord puts every program into a process group of its own, servers fork more, and a runner
that is killed cannot clean up. So each deployment has a random token in its environment, which
every process of it inherits and none can lose by being adopted. The token is noted in ``run/``.
"""

import fcntl
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from bench.environment import ROOT
from bench.errors import BadInput

RUN = ROOT / "run"
LOGS = RUN / "log"
VARIABLE = "DEPLOY_TOKEN"
_NOTE = RUN / "deployment.json"
_GONE_S = 5.0


@contextmanager
def claimed() -> Iterator[None]:
    """Hold this checkout's ``run/`` for oneself; raise ``BadInput`` where another bench holds it.

    The kernel lets go of the lock with its holder, however that ends.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    with (RUN / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadInput(
                "another bench of this checkout is at work: wait for it, or use a second checkout"
            ) from error
        yield


def note(variant_name: str) -> str:
    """Note that a deployment of the variant begins; return its token."""
    token = secrets.token_hex(16)
    _NOTE.write_text(json.dumps({"variant": variant_name, "token": token}) + "\n")
    return token


def noted_variant() -> str | None:
    """Return the variant that the note speaks of."""
    try:
        return str(json.loads(_NOTE.read_text())["variant"])
    except FileNotFoundError:
        return None


def sweep() -> list[int]:
    """Kill whatever the noted deployment left running; return the pids there were."""
    try:
        token = json.loads(_NOTE.read_text())["token"]
    except FileNotFoundError:
        return []
    left = processes(token)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=_GONE_S)
    _NOTE.unlink(missing_ok=True)
    return [process.pid for process in left]


def processes(token: str) -> list[psutil.Process]:
    """Return every living process that carries ``token``."""
    return [process for process in psutil.process_iter() if _carries(process, token)]


def _carries(process: psutil.Process, token: str) -> bool:
    try:
        return bool(process.environ().get(VARIABLE) == token)
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # gone, a zombie, or another user's
        return False


def clear_logs() -> None:
    """Forget the logs of the deployment before: a tail must show this one's."""
    for path in LOGS.iterdir():
        path.unlink()


def log_tail(lines: int = 40, folder: Path = LOGS) -> str:
    """Return the last ``lines`` lines of each log that has any, under its name."""
    texts = {path.name: path.read_text(errors="replace") for path in sorted(folder.glob("*.log"))}
    return "\n".join(
        f"==> {name} <==\n" + "\n".join(text.splitlines()[-lines:])
        for name, text in texts.items()
        if text.strip()
    )
