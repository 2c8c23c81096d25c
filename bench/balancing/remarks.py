"""Why two tools disagree about the same cell, as far as what was measured tells. Pure."""

from collections.abc import Iterator
from itertools import combinations

from bench.balancing.figures import FIGURES, Readings
from bench.balancing.reading import Study
from bench.cells import Spread
from bench.figures import number

NEAR = 0.03  # tools closer than this agree
CONNECTIONS = 0.1  # a request
BUSY = 0.85  # of the generator's processor
IDLE = 0.9  # of the clients
CPU = 0.05


def remarks(study: Study, readings: Readings) -> list[str]:
    """Return a sentence for each pair of tools that disagree by more than their spread."""
    return [
        said
        for cell in study.cells
        for column in study.columns
        for pair in combinations(study.tools, 2)
        for said in _remark(readings, cell.name, column.name, pair, study.generator_cores)
    ]


def _remark(
    readings: Readings, cell: str, column: str, pair: tuple[str, str], cores: int
) -> Iterator[str]:
    found = {tool: readings.spread(cell, tool, column, "rps") for tool in pair}
    known = {tool: one for tool, one in found.items() if one is not None}
    if len(known) < 2:
        return
    slow, fast = sorted(known, key=lambda tool: known[tool].median)
    if not disagree(known[slow], known[fast]):
        return
    why = list(_reasons(readings, cell, column, slow, fast, cores))
    yield (
        f"{column}, {cell}: {slow} {ranged(known[slow])}, {fast} {ranged(known[fast])}. "
        + ("; ".join(why) if why else "Nothing that was measured tells why")
        + "."
    )


def disagree(low: Spread, high: Spread) -> bool:
    """Whether two tools differ by more than their rounds do, and by enough to matter."""
    return low.high < high.low and high.median > (1 + NEAR) * low.median


def ranged(found: Spread) -> str:
    if found.n == 1:
        return number(found.median)
    return f"{number(found.median)} ({number(found.low)} to {number(found.high)})"


def _reasons(
    readings: Readings, cell: str, column: str, slow: str, fast: str, cores: int
) -> Iterator[str]:
    def median(tool: str, figure: str) -> float | None:
        found = readings.spread(cell, tool, column, figure)
        return found.median if found else None

    def medians(figure: str) -> tuple[float | None, float | None]:
        return median(slow, figure), median(fast, figure)

    first, second = medians("connections")
    if first is not None and second is not None and abs(first - second) > CONNECTIONS:
        yield f"{slow} made {number(first)} connections a request and {fast} {number(second)}"
    for tool in (slow, fast):
        used = median(tool, "generator")
        if used is not None and used > BUSY * cores:
            yield f"{tool} used {used / cores:.0%} of its own processor: it is what was measured"
        yield from _failing(readings, cell, column, tool)
    yield from _idle(readings, cell, column, slow)
    # A rate is how much of the time the server works, by what it does in a second of work.
    first, second = medians("server")
    if first and second and first < (1 - CPU) * second:
        yield (
            f"{slow} had the server work for {number(first)} s in a second, and {fast} for "
            f"{number(second)}"
        )
    first, second = medians("per_cpu_s")
    if first and second and abs(first / second - 1) > CPU:
        yield (
            f"a request of {slow} cost the server {1000 / first:.2f} ms of CPU, and one of "
            f"{fast} {1000 / second:.2f}"
        )


def _failing(readings: Readings, cell: str, column: str, tool: str) -> Iterator[str]:
    outcomes = [one.outcome for one in readings.of(cell, tool, column) if one.outcome]
    failed = sum(one.failed for one in outcomes)
    if failed:
        total = sum(one.ok for one in outcomes) + failed
        yield f"{failed:,} of {total:,} requests of {tool} failed, and are not counted here"


def _idle(readings: Readings, cell: str, column: str, tool: str) -> Iterator[str]:
    """Say so where a tool did not keep all its clients waiting for the server."""
    waiting = [
        (FIGURES["in_flight"].value(one), one.clients) for one in readings.of(cell, tool, column)
    ]
    shares = [value / clients for value, clients in waiting if value is not None]
    if shares and max(shares) < IDLE:
        yield (
            f"only {max(shares):.0%} of the clients of {tool} were waiting for the server at a "
            "time: the others were busy in the tool itself, or not there"
        )


def rounding(study: Study, readings: Readings) -> list[str]:
    """Return a sentence for each tool whose latencies are too coarse for what it measured."""
    found: dict[str, tuple[float, float]] = {}
    for one in readings.all:
        outcome = one.outcome
        if outcome is None or outcome.p50_ms is None or not outcome.latency_step_ms:
            continue
        if outcome.p50_ms < 10 * outcome.latency_step_ms:
            found.setdefault(one.tool, (outcome.latency_step_ms, outcome.p50_ms))
    return [
        f"{tool} prints latencies in steps of {number(step_ms)} ms: its median of "
        f"{number(p50_ms)} ms may be off by {step_ms / 2 / max(p50_ms, step_ms):.0%}."
        for tool, (step_ms, p50_ms) in found.items()
        if tool in study.tools
    ]
