"""What channels_ipc set out to reach, and whether the data say that it did."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.layers.measures import MEASURES, MEMBERS, PROCESSES
from bench.layers.results import CPU, Results, losses, ratio, values
from bench.spreads import Ratio, spread

WORDS = {True: "reached", False: "**not reached**", None: "not measured"}


@dataclass(frozen=True)
class Aim:
    """``peer`` over ``against``: at least ``limit`` where ``at_least``, else at most."""

    measure: str
    title: str
    peer: str
    against: str
    limit: float
    at_least: bool
    figure: str | None = None

    @property
    def text(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:.3g}x"

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True)
class Verdict:
    """``reached`` is ``None`` where nothing was measured, and no speed makes up for ``faults``:
    messages that channels_ipc lost or delivered twice."""

    aim: Aim
    ratio: Ratio | None
    faults: int = 0

    @property
    def reached(self) -> bool | None:
        if self.ratio is None:
            return None
        return not self.faults and self.aim.holds(self.ratio.spread.median)


def aims() -> Iterator[Aim]:
    """Yield every aim, one comparison each."""
    for against, limit in (("redis", 12), ("redis_pubsub", 6)):
        title = f"round trip at 300/s on one processor, {against} over ipc"
        yield Aim("round_trip_300_shared", title, against, "ipc", limit, True)
    for measure in ("round_trip", "round_trip_uvloop"):
        yield Aim(measure, f"{MEASURES[measure].title}, ipc over raw", "ipc", "raw", 3.5, False)
    for against, limit in (("redis", 90), ("redis_pubsub", 28)):
        yield Aim("one_way", f"one way, ipc over {against}", "ipc", against, limit, True)
    title = "CPU per message one way, ipc over redis"
    yield Aim("one_way", title, "ipc", "redis", 1 / 80, False, CPU)
    yield from _group_aims()
    title = "32 outstanding, ipc over asgi_ipc"
    yield Aim("outstanding_32", title, "ipc", "asgi_ipc", 20, True)


def _group_aims() -> Iterator[Aim]:
    for members in MEMBERS:
        for processes in PROCESSES:
            measure = f"group_{members}_x{processes}"
            for against, limit in (("redis", 10), ("redis_pubsub", 1.2), ("inmemory", 10)):
                if against in MEASURES[measure].peers:
                    title = f"{MEASURES[measure].title}, ipc over {against}"
                    yield Aim(measure, title, "ipc", against, limit, True)


INTERFERENCE = Aim(
    "interference", "p99 beside a busy third, with the layer over without", "ipc", "", 1.2, False
)


def verdicts(results: Results) -> list[Verdict]:
    """Return every aim with what the rounds say of it."""
    found = [
        Verdict(
            aim,
            ratio(results, aim.measure, (aim.peer, aim.against), aim.figure),
            faults(results, aim.measure),
        )
        for aim in aims()
    ]
    itself = spread(list(values(results, "interference", "ipc", "p99_ratio").values()))
    beside = Ratio(itself, None) if itself else None
    return [*found, Verdict(INTERFERENCE, beside, faults(results, "interference"))]


def faults(results: Results, measure: str) -> int:
    """Return how many messages of ``measure`` channels_ipc lost or delivered twice."""
    _, lost, duplicates = losses(results, measure, "ipc") or (0, 0, 0)
    return lost + duplicates
