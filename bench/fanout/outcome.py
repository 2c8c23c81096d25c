"""What came of one cell, measured once."""

from dataclasses import dataclass, field
from typing import Any

from bench.fanout.cells import Cell
from bench.records import Gate, Machine, Usage, missed


@dataclass(frozen=True)
class Outcome:
    """One cell, once. Counts are records; None is what was not measured.

    ``expected = received + lost + missing`` for users that stayed, where nothing is duplicated:
    ``lost`` are holes in front of a record that came, ``missing`` what never came at the end.
    """

    cell: str
    question: str
    arm: str
    round: int
    users: int
    subscriptions: int
    topics: int
    message_bytes: int
    processes: int
    delivery: str
    layer: str
    transport: str
    rate: float | None
    failure: str | None = None
    published: int = 0
    publish_s: float | None = None
    publisher: dict[str, float | None] = field(default_factory=dict)
    wanted: int = 0  # of what was published: messages to topics of users who stayed
    expected: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # see driver/deliveries.py, and missing
    churned: dict[str, int] = field(default_factory=dict)
    # What the server's own hubs counted, and None what they could not; of one process only.
    hub: dict[str, int | None] | None = None
    deliveries_per_s: float | None = None
    deliveries_per_server_cpu_s: float | None = None
    bytes_per_s: float | None = None
    latency_us: str | None = None  # HdrHistogram V2, base64, from the publisher's clock
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    ramp: tuple[dict[str, float], ...] = ()
    rss_idle_bytes: int | None = None  # of the servers, before anybody is connected ...
    rss_subscribed_bytes: int | None = None  # ... and when all are
    server: Usage | None = None
    generator: Usage | None = None
    machine: Machine | None = None
    gates: tuple[Gate, ...] = ()

    @property
    def fan_out(self) -> float:
        """Subscribers of a topic, on average."""
        return self.users * self.subscriptions / self.topics

    @property
    def where(self) -> str:
        """The layer and how many processes there were, in words."""
        return f"{self.layer}, {self.processes} process{'es' * (self.processes > 1)}"

    @property
    def valid(self) -> bool:
        return self.failure is None and not missed(self.gates)


def described(cell: Cell, number: int) -> dict[str, Any]:
    """Return the part of an outcome that is known before anything is measured."""
    return {
        "cell": cell.name,
        "question": cell.question,
        "arm": cell.arm,
        "round": number,
        "users": cell.users,
        "subscriptions": cell.subscriptions,
        "topics": cell.topics,
        "message_bytes": cell.message_bytes,
        "processes": cell.variant.processes,
        "delivery": cell.variant.delivery,
        "layer": cell.variant.layer,
        "transport": cell.transport,
        "rate": cell.rate,
    }
