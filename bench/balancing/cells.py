"""What is asked of each front, as data: the rows of the two studies, and the columns."""

from dataclasses import dataclass
from typing import Literal

from bench.variants import Variant

Kind = Literal["http", "echo"]

HTTP_STUDY = "HTTP balancing study"
ECHO_STUDY = "WebSocket balancing study"


@dataclass(frozen=True)
class HttpCell:
    """``requests`` by ``clients`` who each wait for their reply.

    ``only`` names the one tool that a cell is for; a cell that is for all has none. ``seconds`` is
    how long a tool runs that cannot count. ``share`` is how much of ``requests`` is sent.
    """

    clients: int
    requests: int
    keepalive: bool
    path: str = "/render_twice/"
    seconds: int = 3
    only: str | None = None
    share: float = 1.0

    @property
    def sent(self) -> int:
        """How many requests are sent; none in a cell that goes by time."""
        return max(self.clients, round(self.requests * self.share)) if self.requests else 0

    @property
    def name(self) -> str:
        kept = "kept" if self.keepalive else "close"
        if self.only:
            return f"{self.only} {self.clients} clients, {self.seconds} s, {kept}"
        return f"{self.clients} x {self.requests}, {kept}"


@dataclass(frozen=True)
class EchoCell:
    """``connections`` that open, send ``messages`` each one by one, and close.

    ``detail`` is the second view: all open, then all send, then all close, timed apart. Batches
    follow each other for ``seconds``, so that short ones are measured long enough.
    """

    messages: int
    connections: int
    detail: bool = False
    seconds: int = 2
    path: str = "/ws/echo/"

    @property
    def name(self) -> str:
        return f"{self.messages} via {self.connections}{', detailed' * self.detail}"


HTTP_CELLS = (
    *(
        HttpCell(clients, requests, keepalive)
        for keepalive in (False, True)
        for clients, requests in ((32, 20_000), (100, 5_000))
    ),
    # The study's own TODO. wrk keeps its connections unless it is told not to.
    HttpCell(100, 0, keepalive=True, only="wrk"),
    HttpCell(100, 0, keepalive=False, only="wrk"),
)

_MATRIX = (
    (400, 1),
    (400, 5),
    (400, 15),
    (100, 35),
    (100, 100),
    (35, 100),
    (15, 400),
    (5, 400),
    (1, 400),
)
# The last row is read twice: messages, and connections opened per second.
ECHO_CELLS = (
    *(EchoCell(messages, connections) for messages, connections in _MATRIX),
    *(EchoCell(messages, 400, detail=True) for messages in (15, 5, 1)),
)


@dataclass(frozen=True)
class Column:
    """One column of a study's table, and the variant that stands in its place today."""

    name: str
    variant: str
    published: str | None  # the beginning of its name in the study's figures, if it is there


def _fronted(server: str, proxy: str, layer: str = "none") -> str:
    # Four processes on four ports: what the studies' containers were.
    return Variant(server, layer, processes=4, proxy=proxy, sharing="ports").name


def _swarm(server: str, layer: str = "none", replicas: int = 4) -> str:
    return Variant(server, layer, processes=replicas, proxy="swarm").name


def _again(first: Column) -> Column:
    """The first column once more: what the two differ by, the machine makes of nothing."""
    return Column(f"{first.name} (again)", first.variant, None)


ONE_WORKER = Column("one worker", Variant("gunicorn").name, "one_worker")
HTTP_COLUMNS = (
    ONE_WORKER,
    Column("apache", _fronted("gunicorn", "apache"), "apache"),
    Column("nginx", _fronted("gunicorn", "nginx"), "nginx"),
    Column("haproxy", _fronted("gunicorn", "haproxy"), "haproxy"),
    Column("swarm", _swarm("gunicorn"), "swarm"),
    # Footnotes of the study: the one hardly answered, the other is its yardstick.
    Column("swarm x8", _swarm("gunicorn", replicas=8), "swarm_8"),
    Column("gunicorn x8", Variant("gunicorn", processes=8).name, "gunicorn_8"),
    _again(ONE_WORKER),
)
DAPHNE_ONLY = Column("daphne only", Variant("daphne", "ipc").name, "daphne")
ECHO_COLUMNS = (
    DAPHNE_ONLY,
    Column("nginx", _fronted("daphne", "nginx", "ipc"), "nginx"),
    Column("haproxy", _fronted("daphne", "haproxy", "ipc"), "haproxy"),
    # Containers have no directory in common, so that the layer is Redis; an echo does not cross it.
    Column("swarm", _swarm("daphne", "redis"), "swarm"),
    _again(DAPHNE_ONLY),
)
