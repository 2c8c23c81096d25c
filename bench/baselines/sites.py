"""What is started for the tables: a server, nginx before it where a row asks for it, as data.

A *site* is one deployment; several rows may be measured on it. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from bench import ports
from bench.baselines import programs
from bench.baselines.programs import BASELINES, NGINX, Baseline, Protocol, Toolchain
from bench.environment import HOST, ROOT, environment
from bench.variants import SERVERS, Variant

BINARIES = ROOT / "run" / "baselines"
SOCKET = ROOT / "run" / "baseline.sock"
TCP = f"{HOST}:{ports.APPLICATION}"
_UNIX = {"nginx": f"unix:{SOCKET}", "uwsgi": str(SOCKET), "gunicorn": f"unix:{SOCKET}"}

Transport = Literal["tcp", "unix"]
Django = Literal["stock", "none"]


@dataclass(frozen=True)
class Front:
    """nginx: what it speaks to ``backend`` (as its ``server`` directive has it), or alone."""

    protocol: Literal["none", "http", "fastcgi", "uwsgi"]
    backend: str | None = None


@dataclass(frozen=True)
class Site:
    """One deployment. ``variant`` decides the environment of the project's own servers.

    ``command`` is what ``supervisor/programs/baseline.conf`` runs; ``server`` names another of the
    program files instead. ``variables`` go over the variant's environment. ``cpus`` is how many
    processors all of it gets.
    """

    name: str
    command: tuple[str, ...] | None = None
    server: str | None = None
    front: Front | None = None
    baseline: Baseline | None = None
    toolchains: tuple[Toolchain, ...] = ()
    variant: Variant = field(default=Variant("gunicorn"))
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)
    cpus: int = 1

    @property
    def programs(self) -> tuple[str, ...]:
        """The program files that supervisord reads."""
        server = (self.server or "baseline",) if self.command or self.server else ()
        return (*server, *(("baseline_nginx",) if self.front else ()))

    @property
    def direct_port(self) -> int:
        """Where its server itself listens, if that is on TCP."""
        return int(environment(self.variant)["DEPLOY_PORT"]) if self.server else ports.APPLICATION

    @property
    def ports(self) -> tuple[int, ...]:
        """Where it answers HTTP."""
        behind = () if self.front is None else (ports.NGINX,)
        kept = (ports.NGINX_KEPT,) if self.front and self.front.protocol == "http" else ()
        direct = self.front is None or (self.front.protocol == "http" and self.front.backend == TCP)
        return (*((self.direct_port,) if direct else ()), *behind, *kept)

    @property
    def needs(self) -> tuple[Toolchain, ...]:
        return (*self.toolchains, *((NGINX,) if self.front else ()))


def nginx_alone() -> Site:
    return Site("nginx", front=Front("none"))


def uwsgi(
    program: str, protocol: Protocol = "uwsgi", transport: Transport = "unix", name: str = ""
) -> Site:
    """nginx before a uWSGI with one of the WSGI programs."""
    address, backend = _addresses("uwsgi", transport)
    return Site(
        name or f"uwsgi-{program}-{protocol}-{transport}",
        command=programs.uwsgi(BASELINES[program].program, protocol, address),
        front=Front(protocol, backend),
        toolchains=(programs.UWSGI,),
    )


def uwsgi_django(middleware: Django) -> Site:
    """nginx before a uWSGI with the project, over a unix socket."""
    address, backend = _addresses("uwsgi", "unix")
    return Site(
        f"uwsgi-django-{middleware}",
        command=programs.uwsgi_django("uwsgi", address),
        front=Front("uwsgi", backend),
        toolchains=(programs.UWSGI,),
        variant=Variant("gunicorn", middleware=middleware),
    )


def gunicorn(transport: Transport) -> Site:
    """nginx before a gunicorn with the bare callable."""
    address, backend = _addresses("gunicorn", transport)
    return Site(
        f"gunicorn-wsgi-http-{transport}",
        command=programs.gunicorn(address),
        front=Front("http", backend),
        toolchains=(programs.GUNICORN,),
    )


def _addresses(server: str, transport: Transport) -> tuple[str, str]:
    """Return where ``server`` listens, and what nginx calls that."""
    return (TCP, TCP) if transport == "tcp" else (_UNIX[server], _UNIX["nginx"])


def http_program(name: str) -> Site:
    """nginx before a program that speaks HTTP itself; it can be asked directly as well."""
    baseline = BASELINES[name]
    return Site(
        name,
        command=baseline.command(ports.APPLICATION, str(BINARIES / name)),
        front=Front("http", TCP),
        baseline=baseline,
        toolchains=(baseline.toolchain,),
    )


def bare_asgi(server: str) -> Site:
    """One of the project's ASGI servers, as its variants have it, with the bare callable."""
    return replace(
        _asgi(server, "bare"),
        variables={"DEPLOY_APPLICATION": "baselines.hello_asgi:application"},
    )


def ladder(server: str, middleware: str, handler: str = "stock", cpus: int = 1) -> Site:
    """The project on an ASGI server, with Django entered in another way or other middleware."""
    parts = [middleware, *([handler] if handler != "stock" else []), *(["x2"] if cpus > 1 else [])]
    return replace(
        _asgi(server, "-".join(parts)),
        variables={
            "DEPLOY_APPLICATION": "baselines.ladder:application",
            "DJANGO_SETTINGS_MODULE": "baselines.ladder_settings",
            "BASELINE_MIDDLEWARE": middleware,
            "BASELINE_HANDLER": handler,
        },
        cpus=cpus,
    )


def _asgi(server: str, what: str) -> Site:
    variant = Variant(server, "inmemory")
    return Site(f"{SERVERS[server].label}-{what}", server=server, variant=variant)


def wsgi(middleware: Django) -> Site:
    """The control of every campaign: gunicorn, asked directly."""
    variant = Variant("gunicorn", middleware=middleware)
    return Site(f"gunicorn-{middleware}", server="gunicorn", variant=variant)
