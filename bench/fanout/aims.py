"""What the fan-out hub set out to reach, and whether the data say that it did. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.fanout.outcome import Outcome
from bench.fanout.pairs import HUB_OVER_GROUP, MANY, SOCKET_OVER_POLL, Pair, pairs
from bench.fanout.results import AIM_PER_CORE, RATE, Results, ratio, spread
from bench.fanout.words import ranged
from bench.spreads import times

HUB_LEAST = 20.0
SUBSCRIBERS_LEAST = 20  # of a topic
SOCKET_LEAST = 1.10
SOCKET_LATENCY_MOST = 0.60
CHURN_DELIVERIES = 10_000_000
# Where each way of delivery is near what it carries. Under one and the same small load there is
# little for a hub to put into one frame, and the aim is about what a process can carry.
CARRIED = ("limit", "subscribers", "redis")
COMPARED = ("limit", "compare")
MOST_P95_MS = 250.0
WRONG = ("lost", "missing", "duplicated", "reordered")


@dataclass(frozen=True)
class Verdict:
    """``reached`` is None, and ``measured`` empty, where nothing was measured."""

    aim: str
    wanted: str
    measured: str = ""
    reached: bool | None = None


def verdicts(results: Results) -> list[Verdict]:
    """Return every aim with what the rounds say of it; of a ratio the median decides."""
    return [*_hub(results), _per_core(results), *_socket(results), _churn(results)]


def _hub(results: Results) -> Iterator[Verdict]:
    aim = "hub over group_send, each near what it carries, deliveries per server CPU-second"
    wanted = f"≥ {HUB_LEAST:g}x"
    found = [
        (question, pair)
        for question in CARRIED
        for pair in pairs(results, question)
        if pair.what == HUB_OVER_GROUP
        and pair.first[0].transport == "websocket"
        and pair.first[0].fan_out >= SUBSCRIBERS_LEAST
    ]
    if not found:
        yield Verdict(f"{aim}, from {SUBSCRIBERS_LEAST} subscribers a topic on", wanted)
    for question, pair in found:
        name = f"{aim}, {pair.first[0].fan_out:g} subscribers a topic ({pair.where}, {question})"
        yield _ratio(results, pair, name, wanted, RATE, least=HUB_LEAST)


def _socket(results: Results) -> Iterator[Verdict]:
    rate, late = "deliveries per server CPU-second", "median latency at the same load"
    found = [
        (question, pair)
        for question in COMPARED
        for pair in pairs(results, question)
        if pair.what == SOCKET_OVER_POLL and pair.first[0].delivery == "hub"
    ]
    most, least = f"≤ {SOCKET_LATENCY_MOST:.2f}x", f"≥ {SOCKET_LEAST:.2f}x"
    if not found:
        yield Verdict(f"{SOCKET_OVER_POLL}, {rate}", least)
        yield Verdict(f"{SOCKET_OVER_POLL}, {late}", most)
    for question, pair in found:
        name, where = SOCKET_OVER_POLL, f"({pair.where}, {question})"
        yield _ratio(results, pair, f"{name}, {rate} {where}", least, RATE, least=SOCKET_LEAST)
        if pair.same_load:
            aim = f"{name}, {late} {where}"
            yield _ratio(results, pair, aim, most, "p50_ms", most=SOCKET_LATENCY_MOST)


def _ratio(
    results: Results,
    pair: Pair,
    aim: str,
    wanted: str,
    figure: str,
    *,
    least: float = 0.0,
    most: float = float("inf"),
) -> Verdict:
    found = ratio(results, pair.first, pair.second, figure)
    if found is None:
        return Verdict(aim, wanted)
    return Verdict(aim, wanted, times(found), least <= found.spread.median <= most)


def _per_core(results: Results) -> Verdict:
    aim = f"records per server CPU-second, {MANY:,} topics a user, WebSocket"
    wanted = f"≥ {AIM_PER_CORE:,}"
    for outcomes in results.cells("limit").values():
        found = spread(outcomes, RATE)
        if is_many_sockets(outcomes[0]) and found is not None:
            return Verdict(aim, wanted, ranged(found), found.median >= AIM_PER_CORE)
    return Verdict(aim, wanted)


def _churn(results: Results) -> Verdict:
    aim = "deliveries while others come and go, none lost, twice or out of order for anybody"
    wanted = f"≥ {CHURN_DELIVERIES:,}"
    # Every round that was long enough counts, whether or not the machine was quiet meanwhile.
    found = [
        one for one in results.of("churn") if not one.failure and one.expected >= CHURN_DELIVERIES
    ]
    if not found:
        return Verdict(aim, wanted)
    least = min(delivered(one) for one in found)
    faults = wrong(found)
    text = f"{least:,} or more in each of {len(found)} rounds, {faults:,} wrong"
    return Verdict(aim, wanted, text, not faults and least >= CHURN_DELIVERIES)


def serves(one: Outcome) -> bool:
    """Whether everything came, once, in order and soon enough, and the measurement counts."""
    soon = one.p95_ms is not None and one.p95_ms <= MOST_P95_MS
    return one.valid and soon and not wrong([one])


def is_many_sockets(one: Outcome) -> bool:
    return one.subscriptions >= MANY and one.transport == "websocket"


def delivered(one: Outcome) -> int:
    return one.counts["received"] + one.churned["received"]


def wrong(outcomes: Sequence[Outcome]) -> int:
    """Return what was wrong for those who stayed and for those who came and went."""
    sides = [side for one in outcomes for side in (one.counts, one.churned)]
    return sum(side.get(name, 0) for side in sides for name in WRONG)
