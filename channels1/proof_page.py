"""What channels1/proof.py has found: proof.json, and the page with the tables."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import records
from bench.spreads import INTERVAL_ROUNDS, ratio_over, times
from bench.workloads import WORKLOADS

CLIENTS = WORKLOADS["minute"].concurrency
MENDED = {
    "published": "as published",
    "channels": "emptied channels removed",
    "semaphore": "one semaphore from reading to writing",
    "both": "both",
}
SLEEPS = {
    "Daphne 1.4.2 + asgi_ipc 1.4.2": ("ipc-50ms", "ipc-1ms"),
    "Daphne 1.4.2 + asgi_redis 1.4.3": ("redis-50ms", "redis-1ms"),
}
DISTURBED = "†"


@dataclass(frozen=True)
class Run:
    """One attempt at one arm. Without a measurement its figures are None."""

    arm: str
    round: int
    attempt: int
    replies_per_5s: tuple[int, ...] | None
    hung: int | None  # clients without a reply at the end
    faults: tuple[str, ...]  # why it does not count
    failure: str | None  # why there is nothing
    versions: dict[str, str] = field(default_factory=dict)  # as the server said itself

    @property
    def counts(self) -> bool:
        return not self.faults and self.failure is None


@dataclass(frozen=True)
class Results:
    """What ``proof.json`` holds. ``finished`` is None where it was interrupted."""

    started: str  # ISO 8601, UTC
    finished: str | None
    rounds: int
    seconds: int
    runs: tuple[Run, ...]
    provenance: dict[str, Any]

    def last(self, arm: str) -> dict[int, Run]:
        """Return the last attempt of each round: the one that counts, if any does."""
        return {run.round: run for run in self.runs if run.arm == arm}


def read(folder: Path) -> Results:
    """Return what ``publish`` has written into ``folder``."""
    data = json.loads((folder / "proof.json").read_text())
    return Results(**data | {"runs": tuple(map(_run, data["runs"]))})


def _run(data: dict[str, Any]) -> Run:
    replies = data["replies_per_5s"]
    lists = {"replies_per_5s": replies and tuple(replies), "faults": tuple(data["faults"])}
    return Run(**data | lists)


def publish(results: Results, folder: Path) -> None:
    """Write ``proof.json`` and the page into ``folder``."""
    records.write_json(asdict(results), folder / "proof.json")
    (folder / "README.md").write_text("\n".join(page(results)) + "\n")


def page(results: Results) -> Iterator[str]:
    """Yield the page's lines."""
    machine = results.provenance["machine"]
    yield "# Why the IPC setups of 2016 were slow: each reason mended by itself\n"
    yield (
        f"{results.started}, commit {results.provenance['commit']}. {machine['cpu']}, "
        f"{machine['usable_processors']} processors, {machine['kernel']}; "
        f"{'; '.join(versions(results))}.\n"
    )
    if results.finished is None:
        yield "**Interrupted**: some runs are missing.\n"
    pinned = results.provenance["pinning"]
    yield (
        f"Rounds: {results.rounds}, each with every setup once, in shuffled order (seed "
        f"{results.provenance['seed']}), in processes of its own. {CLIENTS} clients in a closed "
        f"loop for {results.seconds} s, a connection for each request; none of them gives up "
        f"before the end. Server on processors {pinned['server'] or 'all'}, generator on "
        f"{pinned['generator'] or 'all'}. The code of what is changed is in "
        "`channels1/testproject/`, mended.py and impatient.py; what it is about, in [the software "
        "of 2016](../../docs/2016-stack.md#why-ipc-collapsed).\n"
    )
    yield "| asgi_ipc 1.1.0 | requests in each 5 s | clients without a reply at the end |"
    yield "|---|---|---|"
    for arm, label in MENDED.items():
        yield f"| {label} | {series(results, arm)} | {hung(results, arm)} |"
    yield "\n| requests in each 5 s | sleeps 50 ms, as released | sleeps 1 ms |"
    yield "|---|---|---|"
    for label, arms in SLEEPS.items():
        yield f"| {label} | {' | '.join(series(results, arm) for arm in arms)} |"
    thrown = [run for run in results.runs if not run.counts]
    yield (
        f"\n{len(thrown)} of {len(results.runs)} runs do not count: proof.json says why. "
        f"{DISTURBED} marks a round in which no attempt does; it is left out of what follows.\n"
    )
    yield from conclusions(results)


def versions(results: Results) -> list[str]:
    """Return what the servers said of themselves, once for each environment."""
    names = ("daphne", "asgi_ipc", "asgi_redis", "python")
    said = (
        ", ".join(f"{name} {run.versions[name]}" for name in names)
        for run in results.runs
        if run.versions
    )
    return sorted(set(said))


def series(results: Results, arm: str) -> str:
    """Return the requests in each 5 s of every round."""
    return " and ".join(map(told, results.last(arm).values())) or "not measured"


def told(run: Run) -> str:
    if run.replies_per_5s is None:
        return "failed"
    return ", ".join(map(str, run.replies_per_5s)) + DISTURBED * (not run.counts)


def hung(results: Results, arm: str) -> str:
    """Return how many clients had no reply at the end: once, where it is the same every time."""
    found = [run.hung for run in results.last(arm).values() if run.hung is not None]
    if not any(found):
        return "none" if found else "not measured"
    said = found[:1] if len(set(found)) == 1 else found
    return f"{', '.join(map(str, said))} of {CLIENTS}"


def conclusions(results: Results) -> Iterator[str]:
    """Yield what follows, in two sentences."""
    left = ", ".join(f"{label} ({hung(results, arm)})" for arm, label in MENDED.items())
    gain, beyond = (
        compared(results, "both", arm, lambda replies: replies[-1])
        for arm in ("published", "semaphore")
    )
    yield (
        f"- Clients of asgi_ipc 1.1.0 that have no reply at the end: {left}; and in the last 5 s "
        f"it answers, with both mended, {gain} as many requests as it does as published, and "
        f"{beyond} as many as with the semaphore alone."
    )
    ipc, redis, layers = (
        compared(results, one, other, sum)
        for one, other in (
            ("ipc-1ms", "ipc-50ms"),
            ("redis-1ms", "redis-50ms"),
            ("ipc-1ms", "redis-1ms"),
        )
    )
    yield (
        f"- Where Daphne 1.4.2 sleeps 1 ms, asgi_ipc 1.4.2 answers {ipc} as many requests as with "
        f"the sleep as released, and {layers} as many as asgi_redis 1.4.3 there, which itself "
        f"answers {redis} as many as with the sleep as released."
    )
    yield "\nRatios are the medians of the rounds' own, with the least and the greatest."


def compared(results: Results, one: str, other: str, figure: Callable[[Sequence[int]], int]) -> str:
    """Return in words ``figure`` of ``one`` over that of ``other``, of the rounds that count."""
    top, bottom = results.last(one), results.last(other)
    pairs = [(top[number], bottom[number]) for number in sorted(top.keys() & bottom.keys())]
    ratios = [
        figure(above.replies_per_5s) / figure(below.replies_per_5s)
        for above, below in pairs
        if above.counts and below.counts and figure(below.replies_per_5s)
    ]
    enough = len(ratios) >= INTERVAL_ROUNDS
    return times(ratio_over(ratios, enough=enough)) or "an unknown number of times"
