"""What earlier studies published, as typed rows: ``results/reference/*.csv``, see its README."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BadInput

FOLDER = Path(__file__).parent.parent / "results" / "reference"

STUDY_2016 = "Channels load test, 2016-09-06"
CAVEAT = (
    "Machines, versions and years differ, so the figures of earlier studies are context and not a "
    "comparison of equals. In 2016 every HTTP request crossed the channel layer to a worker; today "
    "only a relayed request does."
)


@dataclass(frozen=True)
class Setup:
    """A deployment of 2016, and today's ``variant`` that stands in its place."""

    variant: str
    published_as: str  # in the latency and throughput tables
    column: str  # in the table of the series


SETUPS_2016 = (
    Setup("gunicorn", "gunicorn 19.6.0", "gunicorn_requests"),
    Setup("daphne-redis", "daphne 0.14.3 + asgi_redis 0.14.0", "daphne_asgi_redis_requests"),
    Setup("daphne-ipc", "daphne 0.14.3 + asgi_ipc 1.1.0", "daphne_asgi_ipc_requests"),
)


@dataclass(frozen=True)
class LatencyBar:
    variant: str
    percentile: float
    latency_ms: float


@dataclass(frozen=True)
class Throughput:
    """A row of the throughput test; ``requests_per_5s`` is text where it fell during the run."""

    variant: str
    requests_per_5s: str
    latency_ms: float


@dataclass(frozen=True)
class SeriesPoint:
    variant: str
    end_s: float
    requests_per_5s: float


@dataclass(frozen=True)
class FrameworkRate:
    row: str
    front: str
    socket: str | None
    protocol: str | None
    server: str | None
    app: str | None
    requests_rps: float


@dataclass(frozen=True)
class Span:
    """A published figure, or the range that repeated runs gave."""

    low: float
    high: float


@dataclass(frozen=True)
class HttpBalancing:
    """One line of the matrix: ``figures`` by column; None where nothing was published.

    Text stands where the study describes a pool of processes, such as ``80+4x45..95``.
    """

    connections: int
    requests: int
    keepalive: bool
    tool: str
    figures: dict[str, Span | str | None]


@dataclass(frozen=True)
class WebsocketBalancing:
    """One line of the matrix; ``requests_per_connection`` also names the rows of resource use.

    ``detailed`` tells the study's second, more closely watched run from its first.
    """

    requests_per_connection: str
    connections: int | None
    detailed: bool
    figures: dict[str, Span | str | None]


@dataclass(frozen=True)
class Fanout:
    users: int
    transport: str
    message_bytes: int
    client_instances: int
    messages_per_s_per_instance: str
    server_cpu_percent: float | None
    max_latency_ms: str | None
    network_gbit_s: str | None


def latency_2016() -> tuple[LatencyBar, ...]:
    """The bars of the latency chart, at 300 requests/s."""
    return tuple(
        LatencyBar(_variant(row["setup"]), float(row["percentile"]), float(row["latency_ms"]))
        for row in _rows("channels-2016-latency.csv")
    )


def throughput_2016() -> tuple[Throughput, ...]:
    """The latency and the requests per 5 s that the throughput test of 2016 names."""
    return tuple(
        Throughput(
            _variant(row["setup"]),
            row["requests_per_5s_typical"],
            float(row["latency_ms_at_that_throughput"]),
        )
        for row in _rows("channels-2016-throughput.csv")
    )


def series_2016() -> tuple[SeriesPoint, ...]:
    """The lines of the throughput chart."""
    return tuple(
        SeriesPoint(setup.variant, float(row["seconds"]), float(row[setup.column]))
        for setup in SETUPS_2016
        for row in _rows("channels-2016-throughput-series.csv")
    )


def framework_baseline() -> tuple[FrameworkRate, ...]:
    """Requests/s of a hello in nine frameworks, and of the sockets between proxy and server."""
    return tuple(
        FrameworkRate(
            row["row"],
            row["front"],
            row["socket"] or None,
            row["protocol"] or None,
            row["server"] or None,
            row["app"] or None,
            float(row["requests_per_s"]),
        )
        for row in _rows("framework-baseline.csv")
    )


def http_balancing() -> tuple[HttpBalancing, ...]:
    return tuple(
        HttpBalancing(
            int(row.pop("connections")),
            int(row.pop("requests")),
            row.pop("keepalive") == "yes",
            row.pop("tool"),
            {name: figure(text) for name, text in row.items()},
        )
        for row in _rows("http-balancing.csv")
    )


def websocket_balancing() -> tuple[WebsocketBalancing, ...]:
    return tuple(
        WebsocketBalancing(
            row.pop("requests_per_connection"),
            _integer(row["connections"].removesuffix(" (detailed)")),
            row.pop("connections").endswith("(detailed)"),
            {name: figure(text) for name, text in row.items()},
        )
        for row in _rows("websocket-balancing.csv")
    )


def websocket_fanout() -> tuple[Fanout, ...]:
    return tuple(
        Fanout(
            int(row["users"]),
            row["transport"],
            int(row["message_bytes"]),
            int(row["client_instances"]),
            row["messages_per_s_per_instance"],
            float(row["server_cpu_percent"]) if row["server_cpu_percent"] else None,
            row["max_latency_ms"] or None,
            row["network_gbit_s"] or None,
        )
        for row in _rows("websocket-fanout.csv")
    )


def figure(text: str) -> Span | str | None:
    """Read ``12``, ``3..8`` or nothing; give back as it is what is more than a number."""
    if not text:
        return None
    low, _, high = text.partition("..")
    try:
        return Span(float(low), float(high or low))
    except ValueError:
        return text


def _integer(text: str) -> int | None:
    return int(text) if text else None


def _variant(published_as: str) -> str:
    for setup in SETUPS_2016:
        if setup.published_as == published_as:
            return setup.variant
    raise BadInput(f"{FOLDER}: no variant of today stands for {published_as!r}; see SETUPS_2016")


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (FOLDER / name).open(newline="") as lines:
        yield from csv.DictReader(lines, strict=True)
