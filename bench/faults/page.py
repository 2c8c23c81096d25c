"""The fault table, as the README of its folder and as JSON beside it."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.faults import traffic
from bench.faults.cases import FAULTS, STALLED_S, Outcome
from bench.faults.connection import OK
from bench.provenance import described

SCHEMA = 2


@dataclass(frozen=True)
class Results:
    """What ``faults.json`` holds. ``finished`` is None where it was interrupted."""

    started: str  # ISO 8601, UTC
    finished: str | None
    rounds: int
    outcomes: tuple[Outcome, ...]
    failures: dict[str, str]  # variant -> why nothing can be said about it
    provenance: dict[str, Any]
    configurations: dict[str, dict[str, str]]  # variant -> file name -> its text
    schema: int = SCHEMA


def write(results: Results, folder: Path) -> None:
    """Write ``faults.json`` and ``README.md`` into ``folder``."""
    (folder / "faults.json").write_text(json.dumps(asdict(results), indent=1) + "\n")
    (folder / "README.md").write_text("\n".join(page(results)) + "\n")


def read(folder: Path) -> Results:
    """Return what ``write`` has written into ``folder``."""
    data = json.loads((folder / "faults.json").read_text())
    outcomes = tuple(Outcome(**outcome) for outcome in data["outcomes"])
    return Results(**data | {"outcomes": outcomes})


def page(results: Results) -> Iterator[str]:
    """Yield the page's lines."""
    machine, versions = results.provenance["machine"], results.provenance["versions"]
    named = ("python", "django", "channels", "uvicorn", "daphne", "gunicorn", *_PROGRAMS)
    yield "# What each front loses when something breaks\n"
    yield (
        f"{results.started}, commit {results.provenance['commit']}, rounds: {results.rounds}. "
        f"{described(machine)}; "
        f"{', '.join(f'{name} {versions[name]}' for name in named if versions.get(name))}.\n"
    )
    if results.finished is None:
        yield "**Interrupted**: some rounds are missing.\n"
    yield (
        f"{traffic.CLIENTS} clients send `GET /`, half of them on a connection that they keep and "
        "half on a new one each time, under "
        f"{traffic.CLIENTS / traffic.PAUSE_S:.0f} requests a second in all; "
        f"{traffic.SOCKETS} WebSockets send a message every {traffic.MESSAGE_PAUSE_S:g} s and "
        "take it back, and one client opens a socket for a single message, again and again: the "
        "handshakes. Every request, socket and message is accounted for. A request that finds its "
        "kept connection closed before any byte of an answer is sent once more, as browsers do: "
        "those are repeated, and lost only if that fails as well. A socket that was open to a "
        "process that was killed or stopped is lost with it, whatever stands in front: those are "
        "counted apart, the others are the front's losses. So with a handshake that had succeeded "
        '("open, then"), and with a message that was under way. A process is killed '
        f"{STALLED_S:g} s after it was made to stop, so that requests or handshakes wait in it; "
        "the slowest is one of either. All rounds are added up; of durations stands the worst.\n"
    )
    for fault in FAULTS.values():
        rows = [one for one in results.outcomes if one.fault == fault.name]
        if rows:
            yield from section(fault.title, rows)
    yield from (f"- {name}: **missing**: {why}" for name, why in results.failures.items())


_PROGRAMS = ("nginx", "haproxy", "apache2")
_HEADS = (
    "variant", "requests", "repeated", "lost", "how", "failing for, s", "median failure, ms",
    "slowest failure, ms", "slowest, ms", "sockets", "ended with their process", "lost",
    "handshakes", "failed", "messages", "lost", "wrong",
)  # fmt: skip


def section(title: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the table of one fault: a row a variant."""
    yield f"## {title[0].upper()}{title[1:]}\n"
    yield f"| {' | '.join(_HEADS)} |"
    yield "|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|"
    for name in dict.fromkeys(one.variant for one in outcomes):
        yield row([one for one in outcomes if one.variant == name])
    yield ""


def row(rounds: Sequence[Outcome]) -> str:
    """Return the rounds of one variant and fault, added up; the worst of each duration."""
    sockets = sum(one.sockets for one in rounds)
    inevitable = [one.sockets_inevitable for one in rounds if one.sockets_inevitable is not None]
    told = bool(sockets) and len(inevitable) == len(rounds)
    cells = (
        f"`{rounds[0].variant}`",
        f"{sum(one.requests for one in rounds):,}",
        f"{sum(one.repeated for one in rounds):,}",
        f"{sum(one.requests_lost for one in rounds):,}",
        how(one.results for one in rounds),
        worst([one.failing_s for one in rounds]),
        worst([one.median_failure_ms for one in rounds]),
        worst([one.slowest_failure_ms for one in rounds]),
        worst([one.slowest_ms for one in rounds]),
        f"{sockets}" if sockets else "",
        f"{sum(inevitable)}" if told else ended(rounds) if sockets else "",
        f"{sum(one.sockets_lost or 0 for one in rounds)}" if told else "",
        f"{sum(one.handshakes for one in rounds):,}" if sockets else "",
        (how(one.handshakes_failed for one in rounds) or "0") if sockets else "",
        f"{sum(one.messages_sent for one in rounds):,}" if sockets else "",
        f"{sum(one.messages_lost for one in rounds):,}" if sockets else "",
        f"{sum(one.messages_wrong for one in rounds)}" if sockets else "",
    )
    return f"| {' | '.join(cells)} |"


def ended(rounds: Sequence[Outcome]) -> str:
    """Return how many sockets ended, of a server that does not say which process has which."""
    count = sum(sum(one.sockets_ended.values()) for one in rounds)
    return f"{count} ended"


def how(results: Iterable[dict[str, int]]) -> str:
    """Return what came of those that were lost, and how often."""
    kinds: Counter[str] = Counter()
    for one in results:
        kinds.update(one)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if kind != OK)


def worst(values: Sequence[float | None]) -> str:
    found = [value for value in values if value is not None]
    if not found:
        return ""
    return f"{max(found):,.0f}" if max(found) >= 100 else f"{max(found):.3g}"
