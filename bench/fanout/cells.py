"""What ``bench fanout`` measures: each cell one deployment under one load."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.errors import unknown
from bench.variants import Variant

# How a cell's clients are run: modules that are started and spoken with alike.
GENERATORS = {"picows": "bench.fanout.generator", "Locust": "bench.fanout.by_locust"}
LAYERS = ("ipc", "redis", "redis_pubsub", "inmemory")
DELIVERIES = ("group", "hub")
QUESTIONS = {
    "compare": "The same feed, delivered by group_send and by a hub",
    "limit": "As much as one server process carries",
    "subscribers": "Cost against subscribers of a topic",
    "redis": "A hundred subscribers a topic, on the layers of channels_redis",
    "load": "Cost against the messages published a second",
    "topics": "Cost against the number of topics",
    "sizes": "Cost against the size of a message",
    "processes": "Cost against the number of server processes",
    "study": "The cells of the Rubris WebSocket baseline, 2016, scaled to this machine",
    "idle": "5,000 open sockets on one process",
    "churn": "Ten million deliveries while others connect and disconnect",
    "generators": "One small cell, by either generator",
}
SEARCH = "users"  # and no question: which cells it has is found out as it goes
QUICK_QUESTIONS = ("compare", "limit")
# What is drawn as a curve, or counted, and compared with nothing.
_DRAWN = ("subscribers", "load", "topics", "sizes", "processes", "idle", "churn", "generators")
FEWER_ROUNDS = dict.fromkeys(_DRAWN, 3)


@dataclass(frozen=True)
class Cell:
    """One load on one variant. ``rate`` is messages published/s, None as fast as possible.

    Each message reaches ``users * subscriptions / topics`` subscribers on average.
    """

    question: str
    variant: Variant
    users: int = 200
    subscriptions: int = 20
    topics: int = 200
    rate: float | None = 100.0
    message_bytes: int = 1_024
    publishers: int = 1
    transport: str = "websocket"
    seconds: float = 6.0
    churning: int = 0
    generator: str = "picows"

    @property
    def arm(self) -> str:
        """What is compared within a question: the variant, and how its clients listen."""
        listening = "" if self.transport == "websocket" else " (long polling)"
        return f"{self.variant.name}{listening}{self._by(' by ')}"

    def _by(self, text: str) -> str:
        return "" if self.generator == "picows" else f"{text}{self.generator}"

    @property
    def name(self) -> str:
        """A name that no other cell has."""
        load = f"{self.users}u-{self.subscriptions}of{self.topics}-{self.message_bytes}B"
        rate = "full" if self.rate is None else f"{self.rate:g}"
        by = self._by("-")
        return f"{self.question}-{self.variant.name}-{self.transport}-{load}-{rate}{by}"


def variant(delivery: str, layer: str = "ipc", processes: int = 1) -> Variant:
    return Variant("uvicorn", layer, processes, delivery=delivery)


def cells(questions: tuple[str, ...], *, quick: bool) -> list[Cell]:
    """Return the cells of the ``questions``; raise ``BadInput`` for one that there is not."""
    for question in questions:
        if question not in QUESTIONS:
            raise unknown("question", question, QUESTIONS)
    found = [cell for question in questions for cell in _ASKED[question]()]
    return [replace(cell, seconds=min(cell.seconds, 3.0)) for cell in found] if quick else found


def _compare() -> Iterator[Cell]:
    for layer in LAYERS:
        for delivery in DELIVERIES:
            for transport in ("websocket", "polling"):
                yield Cell("compare", variant(delivery, layer), transport=transport)
    for layer in ("ipc", "redis"):
        for delivery in DELIVERIES:
            yield Cell("compare", variant(delivery, layer, 4))
    yield Cell("compare", variant("hub", "redis_pubsub", 4))
    for delivery in DELIVERIES:
        yield Cell("compare", variant(delivery, "ipc", 4), transport="polling")


# Messages/s that each layer's hub and group_send carry on one server core, with room to spare.
_LIMITS = {
    ("hub", "ipc"): 10_000.0,
    ("hub", "redis"): 1_500.0,
    ("hub", "redis_pubsub"): 3_000.0,
    ("hub", "inmemory"): 2_000.0,
    ("group", "ipc"): 300.0,
    ("group", "redis"): 150.0,
    ("group", "redis_pubsub"): 250.0,
    ("group", "inmemory"): 200.0,
}


def _limit() -> Iterator[Cell]:
    for (delivery, layer), rate in _LIMITS.items():
        yield Cell("limit", variant(delivery, layer), rate=rate)
    many = Cell("limit", variant("hub"), users=1_000, subscriptions=1_000, topics=50_000)
    yield replace(many, rate=14_000.0, seconds=20.0)
    yield replace(many, rate=4_000.0, seconds=10.0, transport="polling")


# Subscribers of a topic -> deliveries/s that a hub carries on one server core, with room to spare.
_CARRIED = {1: 20_000, 5: 60_000, 20: 160_000, 100: 200_000, 500: 200_000}


def _subscribers() -> Iterator[Cell]:
    for subscribers, carried in _CARRIED.items():
        yield Cell("subscribers", variant("group"), 500, subscribers, 500, 2_000 / subscribers)
        yield Cell("subscribers", variant("hub"), 500, subscribers, 500, carried / subscribers)


def _redis() -> Iterator[Cell]:
    """A message takes so long there that twenty subscribers hardly share it out."""
    rates = {("hub", "redis"): 1_000.0, ("hub", "redis_pubsub"): 2_000.0}
    rates |= {("group", "redis"): 30.0, ("group", "redis_pubsub"): 50.0}
    for (delivery, layer), rate in rates.items():
        yield Cell("redis", variant(delivery, layer), 500, 100, 500, rate)


def _load() -> Iterator[Cell]:
    for rate in (10.0, 100.0, 300.0):
        yield Cell("load", variant("group"), rate=rate)
    for rate in (10.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0):
        yield Cell("load", variant("hub"), rate=rate)


def _topics() -> Iterator[Cell]:
    for topics in (20, 1_000, 50_000):
        for delivery, rate in (("group", 100.0), ("hub", 4_000.0)):
            # Twenty subscribers a topic, however many topics there are.
            users = 200 if topics < 50_000 else 1_000
            yield Cell("topics", variant(delivery), users, topics * 20 // users, topics, rate)


def _sizes() -> Iterator[Cell]:
    for size in (128, 1_024, 3_500, 16_384):
        for delivery, rate in (("group", 200.0), ("hub", 2_000.0)):
            yield Cell("sizes", variant(delivery), rate=rate, message_bytes=size)


def _processes() -> Iterator[Cell]:
    for processes in (1, 2, 4):
        for delivery, rate in (("group", 200.0), ("hub", 4_000.0)):
            yield Cell("processes", variant(delivery, "ipc", processes), rate=rate)


def _study() -> Iterator[Cell]:
    base = Cell("study", variant("hub"), 2_000, 1_000, 50_000, 3_000.0, publishers=4, seconds=10.0)
    yield base
    yield replace(base, transport="polling", rate=1_500.0)
    yield replace(base, users=4_000, subscriptions=500, publishers=8)
    yield replace(base, users=4_000, subscriptions=50, topics=200_000, publishers=8, rate=20_000.0)


def _idle() -> Iterator[Cell]:
    for delivery in DELIVERIES:
        yield Cell("idle", variant(delivery), users=5_000, subscriptions=0, topics=1, seconds=2.0)


def _churn() -> Iterator[Cell]:
    yield Cell("churn", variant("hub"), 500, 40, 1_000, 8_000.0, seconds=63.0, churning=20)


def _generators() -> Iterator[Cell]:
    for generator in GENERATORS:
        yield Cell("generators", variant("hub"), generator=generator)


_ASKED = {
    "compare": _compare,
    "limit": _limit,
    "subscribers": _subscribers,
    "redis": _redis,
    "load": _load,
    "topics": _topics,
    "sizes": _sizes,
    "processes": _processes,
    "study": _study,
    "idle": _idle,
    "churn": _churn,
    "generators": _generators,
}
