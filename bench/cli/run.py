"""``bench run``: a campaign from the first start to the report."""

import os
import secrets
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from bench import provenance, supervise
from bench.apparatus import Servers
from bench.campaign import Run
from bench.errors import BadInput
from bench.ledger import Ledger, new_folder, opened, writing
from bench.plan import Plan, plan
from bench.progress import duration, watching
from bench.provenance import PROJECT, Pinning
from bench.report import publish
from bench.resume import resumed
from bench.summary import Summary, summarize
from bench.tables import verdict_table
from bench.variants import HEADLINE, SWARM_VARIANTS, VARIANTS, Variant
from bench.variants import resolve as resolve_variant
from bench.verdict import faults
from bench.workloads import WORKLOADS

INVALID = 1
INTERRUPTED = 130


class Interrupted(KeyboardInterrupt):
    """Somebody has asked us to stop: by Ctrl-C, by SIGTERM, or by closing the terminal."""


def _names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


@click.command()
@click.option(
    "--full/--quick",
    help="Sixteen rounds with intervals, 80 minutes; or a few short ones, 6 minutes (the default).",
)
@click.option(
    "--variants",
    callback=_names,
    metavar="A,B",
    help=f"Instead of the headline's; `list` has all {len(VARIANTS | SWARM_VARIANTS)}.",
)
@click.option("--tests", callback=_names, metavar="A,B", help=f"Some of {', '.join(WORKLOADS)}.")
@click.option("--rounds", type=int, help="How often everything is measured.")
@click.option("--seconds", type=int, help="How long each measurement takes.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="A new folder. Without it: results/local/<date>-<time>.",
)
@click.option("--seed", type=int, help="Of the order of the variants. Without it: a random one.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="The folder of a campaign to go on with: one that was interrupted, or, with --rounds, one "
    "that shall have more.",
)
def run(
    full: bool,
    variants: tuple[str, ...],
    tests: tuple[str, ...],
    rounds: int | None,
    seconds: int | None,
    into: Path | None,
    seed: int | None,
    resume: Path | None,
) -> None:
    """Measure deployments side by side, and write a report.

    Exits with 1 where the figures cannot be believed, saying why, and with 130 after Ctrl-C; what
    was measured is reported all the same.
    """
    console = Console()
    if resume is not None:
        if full or variants or tests or seconds or into or seed is not None:
            raise BadInput("--resume goes on with what its folder asks for: give --rounds at most")
        raise SystemExit(_resume(resume, rounds, console))
    planned = plan(
        "full" if full else "quick",
        variants=[resolve_variant(name) for name in variants] or _startable(HEADLINE, console),
        tests=tests,
        rounds=rounds,
        seconds=seconds,
        seed=secrets.randbelow(2**32) if seed is None else seed,
    )
    supervise.require(planned.control.variant, os.environ)
    raise SystemExit(_run(planned, into, console))


def _startable(variants: Sequence[Variant], console: Console) -> list[Variant]:
    """Return those of ``variants`` that this machine has the programs for; name the others."""
    found = []
    for variant in variants:
        if lacking := supervise.missing(variant, os.environ):
            console.print(f"[yellow]skipped[/] {variant.name}: {lacking}", soft_wrap=True)
        else:
            found.append(variant)
    return found


def _run(planned: Plan, into: Path | None, console: Console) -> int:
    started = datetime.now(UTC)
    pinned = provenance.pinning(os.sched_getaffinity(0), provenance.siblings())
    ledger = opened(
        planned,
        new_folder(into, started),
        started,
        provenance.provenance(pinned=pinned, seed=planned.seed, command=provenance.command_line()),
    )
    return _measured(planned, 1, ledger, pinned, console)


def _resume(folder: Path, rounds: int | None, console: Console) -> int:
    pinned = provenance.pinning(os.sched_getaffinity(0), provenance.siblings())
    found = resumed(folder, rounds, provenance.circumstances(pinned))
    supervise.require(found.plan.control.variant, os.environ)
    return _measured(found.plan, found.first, found.ledger(), pinned, console)


def _measured(planned: Plan, first: int, ledger: Ledger, pinned: Pinning, console: Console) -> int:
    """Measure from round ``first`` on, show what came of it, and return the exit code."""
    _announce(planned, first, console)
    try:
        with interruptible(), kept_to(pinned), watching(planned, console, first) as watcher:
            name, servers = ledger.campaign.name, Servers(pinned)
            campaign = Run(name, planned, servers, ledger.keep, watcher, first=first)
            campaign.go()
            ledger.close(campaign.rounds_done)
    except Interrupted:
        return _stopped(ledger, console)
    return _finished(ledger, console)


def _announce(planned: Plan, first: int, console: Console) -> None:
    arms = ", ".join(arm.name for arm in planned.arms)
    tests = ", ".join(test.test for test in planned.tests)
    rounds = f"{planned.rounds} round{'s' * (planned.rounds > 1)}"
    if first > 1:
        rounds += f", from round {first} on"
    console.print(f"{arms}: {tests}", soft_wrap=True, highlight=False)
    console.print(
        f"{rounds}, about {duration(planned.total_s(first))}; Ctrl-C keeps what is measured"
    )


def _stopped(ledger: Ledger, console: Console) -> int:
    console.print("[yellow]interrupted[/]: everything is stopped")
    if ledger.samples:
        _show(ledger, console)
    else:
        console.print("nothing had been measured")
    return INTERRUPTED


def _finished(ledger: Ledger, console: Console) -> int:
    summary = _show(ledger, console)  # and the faults with it
    return INVALID if faults(summary) else 0


def _show(ledger: Ledger, console: Console) -> Summary:
    """Print the table and where the report is."""
    summary = summarize(ledger.campaign, ledger.samples)
    console.print(verdict_table(summary))
    with writing(ledger.folder):
        page = publish(ledger.folder).resolve()
    shown = page.relative_to(PROJECT) if page.is_relative_to(PROJECT) else page
    console.print(f"\nReport: [bold]{shown}[/]", soft_wrap=True, highlight=False)
    return summary


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise ``Interrupted`` on the first request to stop; let no other disturb the clearing up."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(_: int, __: FrameType | None) -> None:
        for one in signals:
            # Not SIG_IGN: that would be handed down to what is started from here on.
            signal.signal(one, lambda *_: None)
        raise Interrupted

    before = {one: signal.signal(one, interrupt) for one in signals}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def kept_to(pinned: Pinning) -> Iterator[None]:
    """Keep the runner off the server's processors: it samples while the server is measured."""
    allowed = os.sched_getaffinity(0)
    if pinned.generator is not None:
        os.sched_setaffinity(0, pinned.generator)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
