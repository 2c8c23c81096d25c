"""``bench http``: the same requests by several load generators, side by side."""

import os
import secrets
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from bench import provenance, supervise
from bench.balancing.cells import HTTP_CELLS, HTTP_COLUMNS, HTTP_STUDY, Column, HttpCell
from bench.balancing.publish import measure
from bench.balancing.rounds import Plan
from bench.balancing.site import target as resolved
from bench.cli.run import INTERRUPTED, interruptible, kept_to
from bench.errors import BadInput
from bench.tools import TOOLS, absence, chosen
from bench.tools.tool import Tool
from bench.variants import CONTROL, resolve

FAILED = 1
STUDY_ROUNDS, ROUNDS = 10, 3


@click.command()
@click.argument("variants", nargs=-1, metavar="[VARIANT]...")
@click.option("--tool", "tools", multiple=True, help=f"One of {', '.join(TOOLS)}; repeatable.")
@click.option("-c", "--clients", default=32, show_default=True, help="Clients at once.")
@click.option("-n", "--requests", default=2_000, show_default=True, help="Requests in all.")
@click.option("-k", "--keepalive", is_flag=True, help="Keep connections and use them again.")
@click.option("--path", default="/render_twice/", show_default=True)
@click.option("--seconds", default=3, show_default=True, help="For wrk, which does not count.")
@click.option("-p", "--target", help="A server of your own instead: a port, or its address.")
@click.option("--study", is_flag=True, help=f"The cells and columns of the {HTTP_STUDY}.")
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    help="How much of the study's requests to send: 0.1 takes a tenth of the time.",
)
@click.option("--rounds", type=int, help=f"{ROUNDS} by default; with --study {STUDY_ROUNDS}.")
@click.option("--seed", type=int, help="Of the order. Without it: a random one.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="A new folder. Without it: results/local/<date>-<time>-http.",
)
def http(
    variants: tuple[str, ...],
    tools: tuple[str, ...],
    clients: int,
    requests: int,
    keepalive: bool,
    path: str,
    seconds: int,
    target: str | None,
    study: bool,
    share: float,
    rounds: int | None,
    seed: int | None,
    into: Path | None,
) -> None:
    """Put the same HTTP requests on VARIANTs with each load generator that is installed.

    Prints rates, requests per second of server CPU, errors by kind, CPU, memory and processes, and
    says why the tools disagree where they do. Exits with 1 where a cell could not be measured.
    """
    refuse_bad(clients, requests, seconds)
    refuse_both(target, variants, study=study)
    if share < 1 and not study:
        raise BadInput(f"--share {share:g} is of the study's requests: add --study, or give -n")
    found, missing = chosen(tools)
    absent = {tool.name: absence(tool) for tool in missing}
    if study:
        columns = study_columns(HTTP_COLUMNS, variants, absent)
        cells = tuple(replace(cell, share=share) for cell in HTTP_CELLS)
    else:
        columns = own_columns(variants or (CONTROL.name,), target)
        cells = adhoc(HttpCell(clients, requests, keepalive, path, seconds), found)
    plan = Plan(
        columns,
        cells,
        found,
        (STUDY_ROUNDS if study else ROUNDS) if rounds is None else rounds,
        secrets.randbelow(2**32) if seed is None else seed,
        own=resolved(target) if target else None,
    )
    run(plan, "HTTP through several fronts", study, absent, into, Console())


def adhoc(cell: HttpCell, tools: tuple[Tool, ...]) -> tuple[HttpCell, ...]:
    """Return the one cell asked for: counted, and for tools that cannot count, the same by time."""
    timed = [tool for tool in tools if not tool.counts_requests]
    by_time = tuple(
        HttpCell(cell.clients, 0, cell.keepalive, cell.path, cell.seconds, only=tool.name)
        for tool in timed
    )
    return by_time if len(timed) == len(tools) else (cell, *by_time)


def refuse_bad(*numbers: int) -> None:
    for one in numbers:
        if one < 1:
            raise BadInput(f"{one} asks for nothing: give 1 or more")


def refuse_both(target: str | None, variants: tuple[str, ...], *, study: bool) -> None:
    """Raise ``BadInput`` where a server of one's own is to take part beside variants."""
    if target and (variants or study):
        others = "--study" if study else " ".join(variants)
        raise BadInput(f"-p {target} is measured by itself: leave out {others}")


def own_columns(variants: tuple[str, ...], target: str | None) -> tuple[Column, ...]:
    """Return a column for each variant, or the one for a server of one's own."""
    if target:
        return (Column(target, "", None),)
    return tuple(Column(resolve(name).name, name, None) for name in dict.fromkeys(variants))


def study_columns(
    columns: tuple[Column, ...], only: tuple[str, ...], absent: dict[str, str]
) -> tuple[Column, ...]:
    """Return the columns that can run here, those of ``only`` if given; note why others cannot."""
    known = {one.name for one in columns} | {one.variant for one in columns}
    for name in only:
        if name not in known:
            raise BadInput(f"{name} is no column: {', '.join(one.name for one in columns)}")
    wanted = [one for one in columns if not only or one.name in only or one.variant in only]
    for one in wanted:
        try:
            supervise.require(resolve(one.variant), os.environ)
        except BadInput as missing:
            absent[one.name] = str(missing)
    return tuple(one for one in wanted if one.name not in absent)


def run(
    plan: Plan,
    title: str,
    study: bool,
    missing: dict[str, str],
    into: Path | None,
    console: Console,
) -> None:
    """Measure and report; leave with 1 where something failed."""
    if not plan.columns:
        raise BadInput(f"nothing can be measured: {'; '.join(missing.values())}")
    if plan.own is None:
        supervise.require(resolve(plan.columns[0].variant), os.environ)
    for name, reason in missing.items():
        console.print(f"without {name}: {reason}", highlight=False, soft_wrap=True)
    pinned = provenance.pinning(os.sched_getaffinity(0), provenance.siblings())
    with kept_to(pinned), interruptible():
        about, readings = measure(
            plan,
            title=title,
            study=study,
            missing=missing,
            into=into,
            pinned=pinned,
            console=console,
        )
    if about.finished is None:
        raise SystemExit(INTERRUPTED)
    if readings.failures() or not readings.all:
        raise SystemExit(FAILED)
