"""The tables of "Maximum Throughput, 2012", and the ladder from a bare ASGI server to Django."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from bench import ports, reference
from bench.baselines import sites
from bench.baselines.sites import Site
from bench.errors import BadInput

Table = Literal["concurrency", "sockets", "frameworks", "work", "ladder", "servers"]
CLIENTS = 64  # of the talk's tables
LADDER_CLIENTS = 10  # of this project's throughput test

TABLES: dict[Table, str] = {
    "concurrency": "nginx alone, by how many clients ask at a time",
    "sockets": "From nginx to the server: protocols and sockets",
    "frameworks": "A hello in each framework",
    "work": "Doing work: Django without middleware",
    "ladder": "Where a Django request over ASGI spends its time, on uvicorn",
    "servers": "The other ASGI servers on the same rungs",
}


@dataclass(frozen=True)
class Row:
    """One line of a table: what is asked of which site, by how many clients.

    ``then`` is the line of the talk's tables that it stands beside: its ``row`` and ``app``.
    ``why`` says what the step is, on the ladder.
    """

    name: str
    table: Table
    title: str
    site: Site
    port: int
    path: str = "/"
    clients: int = CLIENTS
    then: tuple[str, str | None] | None = None
    why: str = ""

    @property
    def then_rps(self) -> float | None:
        """What the talk published."""
        return _published(self) if self.then else None


def _published(row: Row) -> float:
    for line in reference.framework_baseline():
        app = (line.app or "").partition(" (")[0] or None
        over = (line.protocol, line.socket) if line.row == "sockets" else None
        if (line.row, app) == row.then or (line.row == "sockets" and over == row.then):
            return line.requests_rps
    raise BadInput(f"{reference.FOLDER}: nothing published for {row.then}")


def rows() -> tuple[Row, ...]:
    """Return every row, by table."""
    return (
        *_concurrency(),
        *_sockets(),
        *_frameworks(),
        *_work(),
        *_ladder(),
        *_servers(),
    )


def _concurrency() -> Iterator[Row]:
    site = sites.nginx_alone()
    for clients in (1, 2, 4, 8, 16, 32, 64, 128):
        yield Row(
            f"nginx-{clients}",
            "concurrency",
            f"nginx alone, {clients} client{'s' * (clients > 1)}",
            site,
            ports.NGINX,
            clients=clients,
            then=(f"nginx concurrency {clients}", None),
        )


def _sockets() -> Iterator[Row]:
    """The four rows of the talk, the two it lacks, and gunicorn."""
    for transport in ("tcp", "unix"):
        for protocol in ("http", "fastcgi", "uwsgi"):
            published = transport == "tcp" or protocol == "uwsgi"
            yield Row(
                f"uwsgi-{protocol}-{transport}",
                "sockets",
                f"uWSGI, {protocol} over {transport}",
                sites.uwsgi("wsgi", protocol, transport),
                ports.NGINX,
                then=(protocol, transport) if published else None,
            )
        yield Row(
            f"gunicorn-http-{transport}",
            "sockets",
            f"gunicorn, http over {transport}",
            sites.gunicorn(transport),
            ports.NGINX,
        )


_UNDER_UWSGI = {"bottle": "Bottle", "flask": "Flask", "cherrypy": "CherryPy"}
_THEMSELVES = {
    "go": ("Go net/http", "Go"),
    "node": ("Node.js http", "Node.js"),
    "tornado": ("Tornado", "Tornado"),
    "twisted": ("Twisted", "Twisted"),
}


def _frameworks() -> Iterator[Row]:
    for name, title in _UNDER_UWSGI.items():
        site = sites.uwsgi(name)
        yield Row(name, "frameworks", title, site, ports.NGINX, then=("frameworks", title))
    yield Row(
        "django",
        "frameworks",
        "Django",
        sites.uwsgi_django("stock"),
        ports.NGINX,
        then=("frameworks", "Django"),
    )
    yield Row(
        "django-no_middleware",
        "frameworks",
        "Django without middleware",
        sites.uwsgi_django("none"),
        ports.NGINX,
        then=("frameworks", "Django without middleware"),
    )
    for name, (title, app) in _THEMSELVES.items():
        yield from _by_itself(name, title, app)


def _by_itself(name: str, title: str, app: str) -> Iterator[Row]:
    site = sites.http_program(name)
    then = ("frameworks", app)
    yield Row(name, "frameworks", f"{title}, behind nginx", site, ports.NGINX, then=then)
    yield Row(
        f"{name}-kept",
        "frameworks",
        f"{title}, behind nginx, connections kept",
        site,
        ports.NGINX_KEPT,
    )
    yield Row(f"{name}-direct", "frameworks", f"{title}, direct", site, site.direct_port)


def _work() -> Iterator[Row]:
    site = sites.uwsgi_django("none")
    for path, as_published in {
        "/": "/hello",
        "/render_name/": "/render_name",
        "/render_table/": "/render_table",
        "/lookup/": "/lookup",
    }.items():
        yield Row(
            f"work-{path.strip('/') or 'hello'}",
            "work",
            f"`{path}`",
            site,
            ports.NGINX,
            path,
            then=("work", f"Django without middleware {as_published}"),
        )


def _rung(name: str, title: str, site: Site, path: str = "/", why: str = "") -> Row:
    return Row(name, "ladder", title, site, site.direct_port, path, clients=LADDER_CLIENTS, why=why)


def _ladder() -> Iterator[Row]:
    """From the least to what everybody runs, then what gets the time back."""
    on = "uvicorn"
    stock, none, inline = (sites.ladder(on, one) for one in ("stock", "none", "inline"))
    yield _rung("bare", "bare ASGI callable", sites.bare_asgi(on), why="the server alone")
    yield _rung(
        "consumer",
        "Channels consumer",
        stock,
        "/consumer/",
        "ProtocolTypeRouter, URLRouter, AsyncHttpConsumer",
    )
    yield _rung(
        "none-async", "Django, no middleware, async view", none, "/async/", "Django's ASGI handler"
    )
    yield _rung("none-sync", "Django, no middleware, sync view", none, "/", "the view in a thread")
    yield _rung(
        "stock-async", "Django, stock middleware, async view", stock, "/async/", "seven middlewares"
    )
    yield _rung(STOCK, "Django, stock middleware, sync view", stock, "/", "what most people run")
    yield _rung(
        "inline-async",
        "middleware in the event loop, async view",
        inline,
        "/async/",
        "the same seven, without trips to a thread",
    )
    yield _rung(
        "inline-sync",
        "middleware in the event loop, sync view",
        inline,
        "/",
        "the same seven, and one trip for the view",
    )
    yield _rung(
        "shared_thread",
        "stock, one thread for all requests",
        sites.ladder(on, "stock", "shared_thread"),
        "/",
        "no thread made for each request, as many trips",
    )
    yield _rung(
        "wsgi_to_asgi",
        "asgiref's WsgiToAsgi",
        sites.ladder(on, "stock", "wsgi_to_asgi"),
        "/",
        "one trip there, some back",
    )
    yield _rung(
        ONE_HOP,
        "OneHopHandler",
        sites.ladder(on, "stock", "one_hop"),
        "/",
        "one trip, four threads: `baselines/one_hop.py`",
    )
    yield _rung(
        "one_hop_1",
        "OneHopHandler, one thread",
        sites.ladder(on, "stock", "one_hop_1"),
        "/",
        "one trip, one thread",
    )
    yield _rung(
        "in_loop",
        "no thread at all (a bound, not advice)",
        sites.ladder(on, "stock", "in_loop"),
        "/",
        "blocks the event loop",
    )
    yield _rung(
        "stock-sync-x2",
        "stock, on two processors",
        sites.ladder(on, "stock", cpus=2),
        "/",
        "the same, not pinned to one",
    )
    yield _rung(
        "one_hop-x2",
        "OneHopHandler, on two processors",
        sites.ladder(on, "stock", "one_hop", cpus=2),
        "/",
        "the same, not pinned to one",
    )
    yield _rung(
        TWIN, "stock (again)", replace(stock, name=f"{stock.name}-again"), "/", "the A/A pair"
    )
    yield _rung(
        "gunicorn", "Django on WSGI, gunicorn", sites.wsgi("stock"), "/", "the control: no ASGI"
    )


STOCK, TWIN, ONE_HOP, BARE, ALONE = "stock-sync", "stock-sync-again", "one_hop", "bare", "nginx-64"


def _servers() -> Iterator[Row]:
    for server, label in (
        ("daphne", "daphne"),
        ("granian", "granian"),
        ("gunicorn_asgi", "gunicorn asgi"),
    ):
        none, stock = sites.ladder(server, "none"), sites.ladder(server, "stock")
        for what, title, site, path in (
            ("bare", "bare ASGI callable", sites.bare_asgi(server), "/"),
            ("consumer", "Channels consumer", stock, "/consumer/"),
            ("none-async", "Django, no middleware, async view", none, "/async/"),
            ("none-sync", "Django, no middleware, sync view", none, "/"),
            ("stock-async", "Django, stock middleware, async view", stock, "/async/"),
            (STOCK, "Django, stock middleware, sync view", stock, "/"),
            (ONE_HOP, "OneHopHandler", sites.ladder(server, "stock", "one_hop"), "/"),
        ):
            yield Row(
                f"{server}-{what}",
                "servers",
                f"{label}: {title}",
                site,
                site.direct_port,
                path,
                clients=LADDER_CLIENTS,
            )


def chosen(patterns: Sequence[str]) -> tuple[Row, ...]:
    """Return the rows that a table's name or a pattern such as ``uwsgi-*`` picks; all for none.

    Raises ``BadInput`` for a pattern that picks none.
    """
    everything = rows()
    picked = {pattern: _picked(everything, pattern) for pattern in patterns}
    for pattern, found in picked.items():
        if not found:
            names = ", ".join([*TABLES, *(row.name for row in everything)])
            raise BadInput(f"--rows {pattern}: no table and no row is called that; {names}")
    wanted = {name for found in picked.values() for name in found}
    return tuple(row for row in everything if not patterns or row.name in wanted)


def _picked(everything: Sequence[Row], pattern: str) -> set[str]:
    return {
        row.name for row in everything if row.table == pattern or fnmatchcase(row.name, pattern)
    }
