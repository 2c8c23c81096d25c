"""The smallest honest program of each framework, as data: what starts it, on what it depends.

The programs are in ``baselines/``; each answers ``GET /`` with the body and the headers of the
Django project's own ``/``. Pure: nothing here starts anything.
"""

from dataclasses import dataclass

from bench.environment import BACKLOG, HOST, ROOT

SOURCE = ROOT / "baselines"
ENVIRONMENT = ROOT / ".venv-baselines" / "bin"
_APT = "apt-get install {}"
_MAKE = "make baselines-env"


@dataclass(frozen=True)
class Toolchain:
    """What runs a baseline: its ``executable``, looked up on the PATH, and the ``remedy``."""

    executable: str
    remedy: str


UWSGI = Toolchain(str(ENVIRONMENT / "uwsgi"), _MAKE)
PYTHON = Toolchain(str(ENVIRONMENT / "python"), _MAKE)
ASGI_SERVER = Toolchain("uvicorn", "pip install -r requirements.txt")
NODE = Toolchain("node", _APT.format("nodejs"))
GO = Toolchain("go", _APT.format("golang-go"))

_UWSGI_OPTIONS = (
    *("--master", "--processes", "1", "--need-app"),
    *("--listen", str(BACKLOG), "--disable-logging", "--die-on-term"),
)


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
        """Return the command that serves on ``port``; ``binary`` is what ``build`` has made."""
        program = str(SOURCE / self.program)
        if self.toolchain is UWSGI:
            socket = ("--http-socket", f"{HOST}:{port}")
            return (UWSGI.executable, *socket, "--wsgi-file", program, *_UWSGI_OPTIONS)
        if self.toolchain is ASGI_SERVER:
            return _uvicorn(self.program.removesuffix(".py"), port)
        start = (binary,) if self.toolchain is GO else (self.toolchain.executable, program)
        return (*start, HOST, str(port), str(BACKLOG))


def _uvicorn(module: str, port: int) -> tuple[str, ...]:
    return (
        *(ASGI_SERVER.executable, f"{module}:application", "--app-dir", str(SOURCE)),
        *("--host", HOST, "--port", str(port), "--backlog", str(BACKLOG)),
        *("--loop", "uvloop", "--http", "httptools", "--lifespan", "off", "--no-access-log"),
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
