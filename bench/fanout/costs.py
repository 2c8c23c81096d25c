"""What a delivery costs the server, along each axis of a campaign. Pure."""

from collections.abc import Callable, Sequence

from bench.fanout.outcome import Outcome
from bench.fanout.results import RATE, Results, spread

# question -> the axis that its cells differ along
CURVES: dict[str, tuple[str, Callable[[Outcome], float]]] = {
    "subscribers": ("subscribers of a topic", lambda one: one.fan_out),
    "load": ("messages published a second", lambda one: one.rate or 0),
    "topics": ("topics", lambda one: one.topics),
    "sizes": ("bytes a message", lambda one: one.message_bytes),
    "processes": ("server processes", lambda one: one.processes),
}


def along(results: Results, question: str) -> dict[float, dict[str, list[Outcome]]]:
    """Return each place on the question's axis, in order -> delivery -> its outcomes."""
    place = CURVES[question][1]
    found: dict[float, dict[str, list[Outcome]]] = {}
    for outcomes in results.cells(question).values():
        found.setdefault(place(outcomes[0]), {})[outcomes[0].delivery] = outcomes
    return dict(sorted(found.items()))


def cost_us(outcomes: Sequence[Outcome]) -> float | None:
    """Return the µs of server CPU that a delivery takes, the median of the rounds that count."""
    found = spread(outcomes, RATE)
    return 1e6 / found.median if found else None
