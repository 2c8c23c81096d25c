"""What the valid readings of a cell say in numbers, over the rounds. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.balancing.reading import Reading
from bench.cells import Spread, spread
from bench.intervals import Interval, ratio_interval
from bench.records import missed
from bench.spreads import INTERVAL_ROUNDS
from bench.tools.tool import Outcome


@dataclass(frozen=True)
class Figure:
    """``value`` gives None where the reading does not have it."""

    name: str
    label: str
    value: Callable[[Reading], float | None]


def rps(reading: Reading) -> float | None:
    """Return good replies per second: in the detailed view, of the time in which they were sent."""
    outcome = reading.outcome
    if outcome is None:
        return None
    span_s = outcome.phases_s.get("sending", outcome.elapsed_s)
    return outcome.ok / span_s if span_s else None


def _per_cpu_s(reading: Reading) -> float | None:
    if reading.outcome is None or reading.server is None:
        return None
    cpu_s = reading.server.cpu_s
    return reading.outcome.ok / cpu_s if cpu_s else None


def _server_share(reading: Reading) -> float | None:
    """Return how many processors the server used, on average, while the tool ran."""
    if reading.outcome is None or reading.server is None or not reading.outcome.elapsed_s:
        return None
    return reading.server.cpu_s / reading.outcome.elapsed_s


def _per_second_of(phase: str) -> Callable[[Reading], float | None]:
    """Return what reads how many sockets went through ``phase`` each second."""

    def value(reading: Reading) -> float | None:
        outcome = reading.outcome
        if outcome is None or not outcome.phases_s.get(phase):
            return None
        return reading.clients * (outcome.batches or 1) / outcome.phases_s[phase]

    return value


def generator_share(reading: Reading) -> float | None:
    """Return how many processors the generator used, on average."""
    if reading.generator is None or reading.machine is None:
        return None
    return reading.generator.cpu_s / reading.machine.wall_s


def connections_per_request(reading: Reading) -> float | None:
    if reading.tcp is None or reading.outcome is None or not reading.outcome.ok:
        return None
    return reading.tcp.opened / (reading.outcome.ok + reading.outcome.failed)


def in_flight(reading: Reading) -> float | None:
    """Return how many clients were waiting for a reply on average.

    As the tool measured it, else by Little's law: rate times mean latency, as far as it tells.
    """
    outcome = reading.outcome
    if outcome is None:
        return None
    if outcome.in_flight is not None or outcome.mean_ms is None or not outcome.elapsed_s:
        return outcome.in_flight
    return outcome.ok / outcome.elapsed_s * outcome.mean_ms / 1000


def _of_server(name: str) -> Callable[[Reading], float | None]:
    def value(reading: Reading) -> float | None:
        return None if reading.server is None else float(getattr(reading.server, name))

    return value


def _pss_mb(reading: Reading) -> float | None:
    if reading.server is None or reading.server.pss_max_bytes is None:
        return None
    return reading.server.pss_max_bytes / 1e6


FIGURES = {
    figure.name: figure
    for figure in (
        Figure("rps", "per second", rps),
        Figure("per_cpu_s", "per server-CPU-second", _per_cpu_s),
        Figure("connects", "connects/s", _per_second_of("opening")),
        Figure("closes", "closes/s", _per_second_of("closing")),
        Figure("cpu_max", "CPU max, cores", _of_server("cpu_max_cores")),
        Figure("pss_mb", "memory, MB", _pss_mb),
        Figure("processes", "processes", _of_server("processes_max")),
        Figure("generator", "generator CPU, cores", generator_share),
        Figure("server", "server CPU, cores", _server_share),
        Figure("connections", "connections per request", connections_per_request),
        Figure("in_flight", "waiting for a reply", in_flight),
        Figure("p50_ms", "p50 ms", lambda one: one.outcome.p50_ms if one.outcome else None),
        Figure("p99_ms", "p99 ms", lambda one: one.outcome.p99_ms if one.outcome else None),
    )
}


@dataclass(frozen=True)
class Ratio:
    """One column's figure over another's, round by round."""

    spread: Spread
    interval: Interval | None


@dataclass(frozen=True)
class Readings:
    """All readings of a study, asked by cell, tool and column."""

    all: tuple[Reading, ...]

    def of(self, cell: str, tool: str, column: str) -> list[Reading]:
        """Return the reading of each round that counts: the last one, where it is valid."""
        found = self._attempts(cell, tool, column)
        return list({one.round: one for one in found if one.valid}.values())

    def spread(self, cell: str, tool: str, column: str, figure: str) -> Spread | None:
        rounds = self._rounds(cell, tool, column, figure)
        return spread(rounds) if rounds else None

    def ratio(
        self, cell: str, tool: str, columns: tuple[str, str], figure: str = "rps"
    ) -> Ratio | None:
        """Return the first column's figure over the second's; None where no round has both."""
        above, below = (self._rounds(cell, tool, column, figure) for column in columns)
        ratios = {number: above[number] / below[number] for number in above if below.get(number)}
        if not ratios:
            return None
        rounds = max(one.round for one in self.all)  # of which some may not count
        enough = rounds >= INTERVAL_ROUNDS and min(ratios.values()) > 0
        return Ratio(spread(ratios), ratio_interval(list(ratios.values())) if enough else None)

    def errors(self, cell: str, tool: str, column: str) -> Counter[str] | None:
        """Return errors by kind, sockets' included; None where there is no outcome.

        Of every attempt, for an error is a finding however the machine was: a round that does not
        count has its errors here, too.
        """
        outcomes = self._outcomes(cell, tool, column)
        return sum((one.kinds for one in outcomes), Counter()) if outcomes else None

    def why_not(self, cell: str, tool: str, column: str) -> str:
        """Return in a few words why a cell has no reading that counts."""
        found = self._attempts(cell, tool, column)
        if not found:
            return ""
        against = [gate.name for gate in missed(found[-1].gates)]
        return found[-1].failure or f"discarded: {', '.join(against)}"

    def failed(self, cell: str, tool: str, column: str) -> int:
        """Return how many requests or messages failed, each counted once whatever its kinds."""
        return sum(one.failed for one in self._outcomes(cell, tool, column))

    def asked(self, cell: str, tool: str, column: str) -> int:
        """Return how many requests or messages those were among."""
        return sum(one.ok + one.failed for one in self._outcomes(cell, tool, column))

    def discarded(self) -> Sequence[Reading]:
        return [one for one in self.all if one.failure is None and not one.valid]

    def failures(self) -> Sequence[Reading]:
        return [one for one in self.all if one.failure is not None]

    def _attempts(self, cell: str, tool: str, column: str) -> list[Reading]:
        wanted = cell, tool, column
        return [one for one in self.all if (one.cell, one.tool, one.column) == wanted]

    def _outcomes(self, cell: str, tool: str, column: str) -> list[Outcome]:
        return [one.outcome for one in self._attempts(cell, tool, column) if one.outcome]

    def _rounds(self, cell: str, tool: str, column: str, figure: str) -> dict[int, float]:
        found = ((one.round, FIGURES[figure].value(one)) for one in self.of(cell, tool, column))
        return {number: float(value) for number, value in found if value is not None}
