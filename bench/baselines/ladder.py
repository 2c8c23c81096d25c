"""The ladder: from a bare ASGI server to stock Django, and what gets the time back."""

from collections.abc import Iterator
from dataclasses import replace

from bench.baselines import sites
from bench.baselines.row import Row
from bench.baselines.sites import Site

LADDER_CLIENTS = 10  # of this project's throughput test
STOCK, TWIN, ONE_HOP, BARE = "stock-sync", "stock-sync-again", "one_hop", "bare"


def _rung(name: str, title: str, site: Site, path: str = "/", why: str = "") -> Row:
    return Row(name, "ladder", title, site, site.direct_port, path, clients=LADDER_CLIENTS, why=why)


def rungs() -> Iterator[Row]:
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
        "one trip, four threads: `testproject/one_hop.py`",
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


def other_servers() -> Iterator[Row]:
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
