"""The fault table, as the README of its folder and as JSON beside it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.faults import traffic
from bench.faults.cases import FAULTS, Outcome

SCHEMA = 1


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
        f"{machine['cpu']}, {machine['usable_processors']} processors, {machine['kernel']}; "
        f"{', '.join(f'{name} {versions[name]}' for name in named if versions.get(name))}.\n"
    )
    if results.finished is None:
        yield "**Interrupted**: some rounds are missing.\n"
    yield (
        f"{traffic.CLIENTS} clients send `GET /`, each on a new connection, under "
        f"{traffic.CLIENTS / traffic.PAUSE_S:.0f} requests a second in all; {traffic.SOCKETS} "
        f"WebSockets send a message every {traffic.MESSAGE_PAUSE_S:g} s and take it back. Every "
        "request, socket and message is accounted for. A socket that was open to a process that "
        "was killed or stopped is lost with it, whatever stands in front: those are counted "
        "apart, the others are the front's losses. All rounds are added up.\n"
    )
    for fault in FAULTS.values():
        rows = [one for one in results.outcomes if one.fault == fault.name]
        if rows:
            yield from section(fault.title, rows)
    yield from (f"- {name}: **missing**: {why}" for name, why in results.failures.items())


_PROGRAMS = ("nginx", "haproxy", "apache2")
_HEADS = (
    "variant", "requests", "lost", "how", "failing for, s", "slowest failure, ms",
    "slowest, ms", "sockets", "ended with their process", "lost", "messages", "wrong",
)  # fmt: skip


def section(title: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the table of one fault: a row a variant."""
    yield f"## {title[0].upper()}{title[1:]}\n"
    yield f"| {' | '.join(_HEADS)} |"
    yield "|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|"
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
        f"{sum(one.requests_lost for one in rounds):,}",
        how(rounds),
        worst([one.failing_s for one in rounds]),
        worst([one.slowest_failure_ms for one in rounds]),
        worst([one.slowest_ms for one in rounds]),
        f"{sockets}" if sockets else "",
        f"{sum(inevitable)}" if told else ended(rounds) if sockets else "",
        f"{sum(one.sockets_lost or 0 for one in rounds)}" if told else "",
        f"{sum(one.messages for one in rounds):,}" if sockets else "",
        f"{sum(one.messages_wrong for one in rounds)}" if sockets else "",
    )
    return f"| {' | '.join(cells)} |"


def ended(rounds: Sequence[Outcome]) -> str:
    """Return how many sockets ended, of a server that does not say which process has which."""
    count = sum(sum(one.sockets_ended.values()) for one in rounds)
    return f"{count} ended"


def how(rounds: Sequence[Outcome]) -> str:
    """Return what came of the requests that were lost, and how often."""
    kinds: dict[str, int] = {}
    for one in rounds:
        for kind, count in one.results.items():
            kinds[kind] = kinds.get(kind, 0) + count
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if kind != traffic.OK)


def worst(values: Sequence[float | None]) -> str:
    found = [value for value in values if value is not None]
    if not found:
        return ""
    return f"{max(found):,.0f}" if max(found) >= 100 else f"{max(found):.3g}"
