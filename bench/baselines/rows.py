"""The tables of "Maximum Throughput, 2012", and those that have come since."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from bench import ports
from bench.baselines import sites
from bench.baselines.ladder import other_servers, rungs
from bench.baselines.row import TABLES, Row
from bench.errors import BadInput

ALONE = "nginx-64"
ONE_CLIENT = "nginx-1"


def rows() -> tuple[Row, ...]:
    """Return every row, by table."""
    return (
        *_concurrency(),
        *_sockets(),
        *_frameworks(),
        *_work(),
        *rungs(),
        *other_servers(),
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
