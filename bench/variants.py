"""Every deployment this project knows, as data.

A variant is named by its factors: ``daphne-ipc-x4`` is Daphne over the inter-process layer in four
processes. The name is built from the factors and never parsed back; a factor at its default is
left out. A combination that cannot work raises ``ValueError`` when it is made, so that a wrong row
in the table below stops at import.
"""

from dataclasses import dataclass, fields, replace
from typing import Literal

from bench.errors import unknown

Interface = Literal["wsgi", "asgi"]

PROXIES = ("direct", "nginx", "haproxy", "apache")
SHARINGS = ("socket", "ports")  # how several processes are reached: see Variant


@dataclass(frozen=True)
class Server:
    """A server program. ``label`` is its part of a variant's name.

    ``trusts_proxy``: whether it can be told to take a client's address and scheme from a proxy.
    """

    name: str
    label: str
    interface: Interface
    trusts_proxy: bool = True


@dataclass(frozen=True)
class Layer:
    """A channel layer, with the names under which the Django project knows it.

    The settings overlays and the entry points have kept the names they had in 2016; this is the
    one table that maps a layer to both. ``one_worker_because`` is the reason why a named channel
    of this layer takes one ``runworker`` process and not as many as there are server processes.
    """

    name: str
    settings: str
    entry_point: str
    crosses_processes: bool = True
    service: str | None = None
    one_worker_because: str | None = None


SERVERS = {
    server.name: server
    for server in (
        Server("gunicorn", "gunicorn", "wsgi"),
        Server("gunicorn_asgi", "gunicorn-asgi", "asgi"),
        Server("uvicorn", "uvicorn", "asgi"),
        Server("daphne", "daphne", "asgi"),
        Server("granian", "granian", "asgi", trusts_proxy=False),
    )
}

LAYERS = {
    layer.name: layer
    for layer in (
        Layer(
            "none",
            "settings.no_channels",
            "testproject.wsgi_no_channels:application",
            crosses_processes=False,
        ),
        Layer(
            "inmemory",
            "settings.channels_inmemory",
            "testproject.asgi_for_inmemory:application",
            crosses_processes=False,
        ),
        Layer("ipc", "settings.channels_ipc", "testproject.asgi_for_ipc:application"),
        Layer(
            "redis",
            "settings.channels_redis",
            "testproject.asgi:application",
            service="redis",
            one_worker_because="several workers on one channel receive some messages twice",
        ),
        Layer(
            "redis_pubsub",
            "settings.channels_redis_pubsub",
            "testproject.asgi_for_redis_pubsub:application",
            service="redis",
            one_worker_because="every worker receives every message",
        ),
    )
}


@dataclass(frozen=True)
class Stack:
    """A generation of the software: today's, or one of 2016's in an environment of its own.

    ``environment`` is that environment's folder in the project's root, and ``made_by`` the command
    that makes it; None is the environment that runs this.
    """

    name: str
    environment: str | None = None
    made_by: str = "pip install -r requirements.txt"


STACKS = {
    stack.name: stack
    for stack in (
        Stack("today"),
        Stack("channels1", ".venv-channels1", "make channels1-env"),
        Stack("channels017", ".venv-channels017", "make channels017-env"),
    )
}


@dataclass(frozen=True)
class Variant:
    """One deployment. Raises ``ValueError`` for a combination that cannot work.

    Several processes share one listening socket (``sharing`` is ``socket``), or each listens on a
    port of its own and the proxy spreads the clients over them (``ports``).
    """

    server: str
    layer: str = "none"
    processes: int = 1
    middleware: str = "stock"
    stack: str = "today"
    handler: str = "django"  # how an ASGI server enters Django
    delivery: str = "hub"  # how topics reach subscribers; nothing else depends on it
    proxy: str = "direct"
    sharing: str = "socket"

    def __post_init__(self) -> None:
        if self.server not in SERVERS:
            raise unknown("server", self.server, SERVERS)
        if self.layer not in LAYERS:
            raise unknown("layer", self.layer, LAYERS)
        if self.stack not in STACKS:
            raise unknown("stack", self.stack, STACKS)
        if self.middleware not in ("stock", "none"):
            raise unknown("middleware", self.middleware, ("stock", "none"))
        if self.handler not in ("django", "one_hop"):
            raise unknown("handler", self.handler, ("django", "one_hop"))
        if self.handler != "django" and (self.interface == "wsgi" or self.stack != "today"):
            raise ValueError(f"{self.name}: only today's ASGI servers can enter Django in one hop")
        if self.delivery not in ("hub", "group"):
            raise unknown("delivery", self.delivery, ("hub", "group"))
        if self.delivery != "hub" and self.interface == "wsgi":
            raise ValueError(f"{self.name}: a WSGI server has no sockets to deliver to")
        if self.processes < 1:
            raise ValueError(f"{self.name}: {self.processes} processes cannot serve")
        if self.interface == "wsgi" and self.layer != "none":
            raise ValueError(f"{self.name}: a WSGI server has no use for a channel layer")
        if self.interface == "asgi" and self.layer == "none":
            raise ValueError(f"{self.name}: the ASGI entry points each belong to a channel layer")
        if self.layer == "inmemory" and self.processes > 1:
            raise ValueError(f"{self.name}: the in-memory layer does not cross processes")
        if self.stack != "today" and replace(self, stack="today") not in HEADLINE:
            raise ValueError(f"{self.name}: of 2016 there are the three setups of its load test")
        self._check_front()

    def _check_front(self) -> None:
        """Raise ``ValueError`` where what stands in front of the server cannot work."""
        if self.proxy not in (*PROXIES, "swarm"):
            raise unknown("proxy", self.proxy, (*PROXIES, "swarm"))
        if self.sharing not in SHARINGS:
            raise unknown("sharing", self.sharing, SHARINGS)
        if self.sharing == "ports" and (self.proxy == "direct" or self.processes == 1):
            raise ValueError(f"{self.name}: several ports need several processes and a proxy")
        if self.proxy == "swarm":
            self._check_swarm()
        if self.proxy != "direct" and not SERVERS[self.server].trusts_proxy:
            raise ValueError(f"{self.name}: {self.server} cannot take a client's address from it")

    def _check_swarm(self) -> None:
        """Raise ``ValueError`` where containers, maybe of several machines, cannot work."""
        if self.layer == "ipc":
            raise ValueError(f"{self.name}: the inter-process layer does not leave a container")
        if self.stack != "today" or self.sharing != "socket":
            raise ValueError(f"{self.name}: a swarm has today's software, one process a container")

    @property
    def interface(self) -> Interface:
        return SERVERS[self.server].interface

    @property
    def name(self) -> str:
        """The factors that are not at their default, joined by ``-``."""
        parts = [SERVERS[self.server].label]
        if self.stack != "today":
            parts.insert(0, self.stack)
        if self.layer != "none":
            parts.append(self.layer)
        if self.proxy != "direct":
            parts.append(self.proxy)
        if self.processes > 1:
            parts.append(f"x{self.processes}")
        if self.sharing != "socket":
            parts.append(self.sharing)
        if self.middleware != "stock":
            parts.append("no_middleware")
        if self.handler != "django":
            parts.append(self.handler)
        if self.delivery != "hub":
            parts.append(self.delivery)
        return "-".join(parts)

    @property
    def has_worker(self) -> bool:
        """Whether a ``runworker`` process stands behind the channel layer and ``/relay/``.

        In 2016 every request went to one, and there is no ``/relay/``.
        """
        return self.stack == "today" and LAYERS[self.layer].crosses_processes

    @property
    def loses_requests(self) -> bool:
        """Whether requests of several clients get lost for good: docs/2016-stack.md shows how."""
        return (self.stack, self.layer) == ("channels017", "ipc")

    @property
    def settings(self) -> str:
        """The settings module, as the project of its stack calls it."""
        module = LAYERS[self.layer].settings
        return module if self.stack == "today" else f"testproject.{module}"

    @property
    def entry_point(self) -> str:
        """What the server serves; in 2016 an ASGI server was given the channel layer."""
        today = LAYERS[self.layer].entry_point
        if self.stack == "today" or self.interface == "wsgi":
            return today
        return today.replace(":application", ":channel_layer")

    @property
    def workers(self) -> int:
        """How many ``runworker`` processes there are: one a server process, where that is right."""
        if self.stack != "today":
            return int(self.interface == "asgi")
        if not self.has_worker:
            return 0
        return 1 if LAYERS[self.layer].one_worker_because else self.processes

    @property
    def group(self) -> str:
        """The supervisord group, as in 2016."""
        return "django_http" if self.interface == "wsgi" else "django_channels"

    def factors(self) -> dict[str, str | int]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


CONTROL = Variant("gunicorn")
HEADLINE = (CONTROL, Variant("daphne", "redis"), Variant("daphne", "ipc"))  # the setups of 2016

_SINGLE = (
    *HEADLINE,
    Variant("uvicorn", "redis"),
    Variant("uvicorn", "ipc"),
    Variant("daphne", "inmemory"),
    Variant("daphne", "redis_pubsub"),
    Variant("gunicorn_asgi", "redis"),
    Variant("granian", "ipc"),
)
_FOURFOLD = tuple(
    Variant(one.server, one.layer, processes=4) for one in _SINGLE if one.layer != "inmemory"
)
_NO_MIDDLEWARE = tuple(
    Variant(one.server, one.layer, middleware="none")
    for one in (CONTROL, Variant("daphne", "ipc"), Variant("uvicorn", "ipc"))
)

_ONE_HOP = tuple(Variant(server, "ipc", handler="one_hop") for server in ("daphne", "uvicorn"))
_GROUP = (Variant("uvicorn", "ipc", delivery="group"),)

# The columns of the two balancing studies, with several ports as they had them and with one.
_HTTP_FRONTS = tuple(
    Variant("gunicorn", processes=4, proxy=proxy, sharing=sharing)
    for sharing in ("ports", "socket")
    for proxy in PROXIES
    if proxy != "direct"
)
_WEBSOCKET_FRONTS = (
    *(
        Variant("daphne", layer, processes=4, proxy=proxy, sharing="ports")
        for layer in ("ipc", "redis")
        for proxy in PROXIES
        if proxy != "direct"
    ),
    Variant("daphne", "ipc", processes=4, proxy="nginx"),
    Variant("daphne", "ipc", processes=4, proxy="haproxy"),
    Variant("uvicorn", "ipc", processes=4, proxy="nginx", sharing="ports"),
    Variant("uvicorn", "ipc", processes=4, proxy="haproxy", sharing="ports"),
    Variant("uvicorn", "ipc", processes=4, proxy="apache", sharing="ports"),
    Variant("uvicorn", "redis", processes=4, proxy="nginx", sharing="ports"),
)
_FRONTS = (Variant("gunicorn", processes=8), *_HTTP_FRONTS, *_WEBSOCKET_FRONTS)

_OF_2016 = tuple(
    replace(one, stack=stack) for stack in ("channels1", "channels017") for one in HEADLINE
)

VARIANTS = {
    variant.name: variant
    for variant in (*_SINGLE, *_FOURFOLD, *_FRONTS, *_NO_MIDDLEWARE, *_ONE_HOP, *_GROUP, *_OF_2016)
}

# Those of containers are apart: Docker runs them and not supervisord, and only as root.
SWARM_VARIANTS = {
    variant.name: variant
    for server, layer in (("gunicorn", "none"), ("daphne", "redis"), ("uvicorn", "redis"))
    for processes in (4, 8)
    for variant in (Variant(server, layer, processes=processes, proxy="swarm"),)
}


def resolve(name: str) -> Variant:
    """Return the variant called ``name``; raise ``BadInput`` that names the nearest ones."""
    every = VARIANTS | SWARM_VARIANTS
    if name not in every:
        raise unknown("variant", name, every)
    return every[name]
