"""The programs in ``baselines/``, as data: what starts each, on what it depends.

Each is the smallest honest program of its framework, and answers ``GET /`` with the body and the
headers of the Django project's own ``/``. Pure: nothing here starts anything.
"""

from dataclasses import dataclass
from sysconfig import get_path
from typing import Literal

from bench.environment import BACKLOG, HOST, ROOT

SOURCE = ROOT / "baselines"
ENVIRONMENT = ROOT / ".venv-baselines" / "bin"
_APT = "apt-get install {}"
_MAKE = "make baselines-env"

Protocol = Literal["http", "fastcgi", "uwsgi"]
_UWSGI_SOCKETS = {"http": "--http-socket", "fastcgi": "--fastcgi-socket", "uwsgi": "--socket"}


@dataclass(frozen=True)
class Toolchain:
    """What runs a baseline: its ``executable``, looked up on the PATH, and the ``remedy``."""

    executable: str
    remedy: str


UWSGI = Toolchain(str(ENVIRONMENT / "uwsgi"), _MAKE)
PYTHON = Toolchain(str(ENVIRONMENT / "python"), _MAKE)
ASGI_SERVER = Toolchain("uvicorn", "pip install -r requirements.txt")
GUNICORN = Toolchain("gunicorn", "pip install -r requirements.txt")
NGINX = Toolchain("nginx", _APT.format("nginx"))
NODE = Toolchain("node", _APT.format("nodejs"))
GO = Toolchain("go", _APT.format("golang-go"))

_UWSGI_OPTIONS = (
    *("--master", "--processes", "1", "--need-app"),
    *("--listen", str(BACKLOG), "--disable-logging", "--die-on-term"),
)
DJANGO_MODULE = "testproject.wsgi_no_channels:application"


@dataclass(frozen=True)
class Baseline:
    """One program in ``baselines/``, named for its framework."""

    name: str
    program: str
    toolchain: Toolchain

    def build(self, binary: str) -> tuple[str, ...] | None:
        """Return the command that makes ``binary`` of the program; None where nothing is built."""
        if self.toolchain is not GO:
            return None
        return (GO.executable, "build", "-o", binary, str(SOURCE / self.program))

    def command(self, port: int, binary: str) -> tuple[str, ...]:
        """Return the command that serves HTTP on ``port``; ``build`` has made ``binary``."""
        program = str(SOURCE / self.program)
        if self.toolchain is UWSGI:
            return uwsgi(self.program, "http", f"{HOST}:{port}")
        if self.toolchain is ASGI_SERVER:
            return _uvicorn(self.program.removesuffix(".py"), port)
        start = (binary,) if self.toolchain is GO else (self.toolchain.executable, program)
        return (*start, HOST, str(port), str(BACKLOG))


def uwsgi(program: str, protocol: Protocol, address: str) -> tuple[str, ...]:
    """Return the command of a uWSGI that serves ``program`` on ``address``, in one process.

    ``address`` is a host and port, or a path for a unix socket.
    """
    socket = (_UWSGI_SOCKETS[protocol], address)
    return (UWSGI.executable, *socket, "--wsgi-file", str(SOURCE / program), *_UWSGI_OPTIONS)


def uwsgi_django(protocol: Protocol, address: str) -> tuple[str, ...]:
    """Return the command of a uWSGI that serves the Django project on ``address``.

    The interpreter is the one of the baselines' environment; Django is the project's own.
    """
    found = ("--pythonpath", str(ROOT), "--pythonpath", get_path("purelib"))
    socket = (_UWSGI_SOCKETS[protocol], address)
    return (UWSGI.executable, *socket, *found, "--module", DJANGO_MODULE, *_UWSGI_OPTIONS)


def gunicorn(address: str) -> tuple[str, ...]:
    """Return the command of a gunicorn that serves the bare WSGI callable on ``address``."""
    return (
        *(GUNICORN.executable, "hello_wsgi:application", "--chdir", str(SOURCE)),
        *("--bind", address, "--backlog", str(BACKLOG), "--workers", "1"),
        *("--worker-class", "sync", "--worker-tmp-dir", "/dev/shm", "--no-control-socket"),  # noqa: S108 - memory, as gunicorn advises
    )


def _uvicorn(module: str, port: int) -> tuple[str, ...]:
    return (
        *(ASGI_SERVER.executable, f"{module}:application", "--app-dir", str(SOURCE)),
        *("--host", HOST, "--port", str(port), "--backlog", str(BACKLOG)),
        *("--loop", "uvloop", "--http", "httptools", "--lifespan", "on", "--no-access-log"),
    )


BASELINES = {
    baseline.name: baseline
    for baseline in (
        Baseline("wsgi", "hello_wsgi.py", UWSGI),
        Baseline("bottle", "hello_bottle.py", UWSGI),
        Baseline("flask", "hello_flask.py", UWSGI),
        Baseline("cherrypy", "hello_cherrypy.py", UWSGI),
        Baseline("tornado", "hello_tornado.py", PYTHON),
        Baseline("twisted", "hello_twisted.py", PYTHON),
        Baseline("node", "hello_node.js", NODE),
        Baseline("go", "hello_go.go", GO),
        Baseline("asgi", "hello_asgi.py", ASGI_SERVER),
    )
}
