"""Starts a site under supervisord and stops it: what is yielded answers as it should."""

import http.client
import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench import ports, readiness, remains, supervise
from bench.baselines.programs import GO, NODE, UWSGI, Toolchain
from bench.baselines.sites import BINARIES, SOCKET, Front, Site
from bench.environment import BACKLOG, HOST, KEEP_ALIVE_S, ROOT
from bench.errors import BadInput
from bench.supervise import StartFailed

START_S = 40.0
BUILD_S = 120
PREFIX = ROOT / "run" / "baseline-nginx"
_TEMPLATES = ROOT / "nginx"
_SBIN = "/usr/sbin:/sbin"  # where Debian has nginx, and a user's PATH does not
_REPLY_S = 10.0


@dataclass(frozen=True)
class Served:
    """A site that answers. ``pid`` is supervisord's, the root of the whole process tree."""

    site: Site
    pid: int


@dataclass(frozen=True)
class Reply:
    """What a client got; ``size_bytes`` is all of it, status line and headers included."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    size_bytes: int


@contextmanager
def served(
    site: Site, *, cpus: Collection[int] | None = None, start_s: float = START_S
) -> Iterator[Served]:
    """Run ``site`` on ``cpus``; yield it when every port of it answers, and stop all of it after.

    Raises ``BadInput`` where a person must do something first, and ``StartFailed``.
    """
    with remains.claimed():
        require(site)
        process = _start(site, cpus)
        try:
            _wait(site, process, start_s)
            yield Served(site, process.pid)
        finally:
            supervise.stop(process)
            SOCKET.unlink(missing_ok=True)


def missing(site: Site) -> str | None:
    """Return what this machine lacks to run ``site``, and the remedy; None where nothing is."""
    for toolchain in site.needs:
        if found(toolchain) is None:
            return f"{toolchain.executable} is missing: {toolchain.remedy}"
    return None


def found(toolchain: Toolchain) -> str | None:
    return shutil.which(toolchain.executable, path=search_path())


def search_path() -> str:
    return f"{supervise.BIN}:{os.environ.get('PATH', os.defpath)}:{_SBIN}"


def require(site: Site) -> None:
    """Raise ``BadInput`` where ``site`` cannot be started as things are; build what it needs."""
    if lacking := missing(site):
        raise BadInput(f"{site.name}: {lacking}")
    supervise.require(site.variant, os.environ)
    for port in site.ports:
        ports.require_free(port)
    SOCKET.unlink(missing_ok=True)
    build(site)


@cache
def build(site: Site) -> None:
    """Compile the program of ``site``, where that is what its language does. Once."""
    if site.baseline is None:
        return
    command = site.baseline.build(str(BINARIES / site.baseline.name))
    if command is None:
        return
    BINARIES.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command,
        check=False,
        cwd=BINARIES,
        env=os.environ | {"PATH": search_path()},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
    )
    if done.returncode:
        raise BadInput(f"{site.name}: {' '.join(command)} failed: {done.stderr.strip()}")


def _start(site: Site, cpus: Collection[int] | None) -> subprocess.Popen[bytes]:
    remains.clear_logs()
    if site.front:
        PREFIX.mkdir(parents=True, exist_ok=True)
        (PREFIX / "nginx.conf").write_text(nginx_conf(site.front, as_root=os.geteuid() == 0))
    token = remains.note(site.name)
    with (remains.LOGS / "start.log").open("wb") as log:
        return subprocess.Popen(
            supervise.command(cpus, dies_with_us=True),
            cwd=ROOT,
            env=process_environment(site, os.environ) | {remains.VARIABLE: token},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def process_environment(site: Site, shell: Mapping[str, str]) -> dict[str, str]:
    """Return all that the processes of ``site`` find in their environment."""
    files = " ".join(f"supervisor/programs/{name}.conf" for name in site.programs)
    return {
        **supervise.process_environment(site.variant, shell),
        "DEPLOY_FILES_FROM_BENCH_ENV": files,
        "BASELINE_COMMAND": " ".join(site.command or ()),
        "PATH": search_path(),
        **site.variables,
    }


def nginx_conf(front: Front, *, as_root: bool) -> str:
    """Return nginx's configuration for ``front``."""
    templates = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=False,  # noqa: S701 - no HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return templates.get_template("baselines.conf.j2").render(
        as_root=as_root,
        backend=front.backend,
        backlog=BACKLOG,
        host=HOST,
        keep_alive_s=KEEP_ALIVE_S,
        kept_port=ports.NGINX_KEPT,
        port=ports.NGINX,
        protocol=front.protocol,
    )


def _wait(site: Site, process: subprocess.Popen[bytes], start_s: float) -> None:
    until = time.monotonic() + start_s
    alive = partial(supervise.require_alive, process)
    try:
        for port in site.ports:
            readiness.wait(partial(check, port, "/"), until=until, alive=alive)
    except (readiness.NotReady, readiness.Wrong) as error:
        raise StartFailed(f"{site.name}: {error}", remains.log_tail()) from error


def check(port: int, path: str) -> Reply:
    """Return the reply to ``path``, which is as it should be; raise ``NotReady`` or ``Wrong``.

    The pages that answer OK must have the body and the headers of the project's own ``/``.
    """
    try:
        reply = get(port, path)
    except (OSError, http.client.HTTPException) as error:
        raise readiness.NotReady(f"GET {path}: {error or type(error).__name__}") from error
    if reply.status in (502, 503):  # nginx, before its server listens
        raise readiness.NotReady(f"GET {path}: status {reply.status}")
    if reply.status != 200 or not reply.body:
        raise readiness.Wrong(f"GET {path}: status {reply.status}, {len(reply.body)} bytes")
    if path in OK_PATHS and (said := _said(reply)) != OK:
        raise readiness.Wrong(f"GET {path}: {said} instead of {OK}")
    return reply


OK_PATHS = ("/", "/async/", "/consumer/")
OK = (b"OK", "text/plain", "2")


def _said(reply: Reply) -> tuple[bytes, str | None, str | None]:
    return reply.body, reply.headers.get("content-type"), reply.headers.get("content-length")


class _Counting(http.client.HTTPResponse):
    """Knows how long the head of the reply was."""

    head_bytes = 0

    def begin(self) -> None:
        readline = self.fp.readline

        def counted(limit: int | None = -1) -> bytes:
            line = readline(limit)
            self.head_bytes += len(line)
            return line

        self.fp.readline = counted  # type: ignore[method-assign]
        super().begin()


def get(port: int, path: str) -> Reply:
    """Ask once, as wrk asks: HTTP/1.1, keep-alive."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_REPLY_S)
    connection.response_class = _Counting
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        assert isinstance(response, _Counting)
        headers = {name.lower(): value for name, value in response.getheaders()}
        body = response.read()
        return Reply(response.status, headers, body, response.head_bytes + len(body))
    finally:
        connection.close()


def versions() -> dict[str, str]:
    """Return what the toolchains say of themselves, for the record."""
    asked = {
        "node": (NODE.executable, "--version"),
        "go": (GO.executable, "version"),
        "wrk": ("wrk", "--version"),
        "ab": ("ab", "-V"),
        "uwsgi": (UWSGI.executable, "--version"),
    }
    said = {}
    for name, command in asked.items():
        if shutil.which(command[0], path=search_path()):
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, env={"PATH": search_path()}
            )
            if number := re.search(r"\d+\.\d+[\w.+-]*", done.stdout + done.stderr):
                said[name] = number.group()
    return said
