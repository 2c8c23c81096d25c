"""``bench check``: what limits this machine, and the commands that change it."""

import click
from rich.console import Console
from rich.markup import escape

from bench.check import Row, prevented, read, rows

_MARKS = {"ok": "[green]ok[/]", "advice": "[yellow]advice[/]", "prevents": "[red]prevents[/]"}


@click.command()
@click.pass_context
def check(ctx: click.Context) -> None:
    """Check the limits of this machine; exit with 1 where one prevents a campaign."""
    found = rows(read())
    console = Console(soft_wrap=True, highlight=False)
    for row in found:
        console.print(_line(row))
    if prevented(found):
        console.print("Something above prevents a campaign.")
        ctx.exit(1)


def _line(row: Row) -> str:
    """Return a row as text; the command stands on a line of its own, ready to copy."""
    told = f"{row.name}: {escape(row.present)}"
    wanted = f" (needed: {escape(row.needed)})"
    command = "" if row.command is None else f"\n         {escape(row.command)}"
    return f"{_MARKS[row.verdict]:<{_width(row)}} {told}{wanted}{command}"


def _width(row: Row) -> int:
    """Return how wide the mark must be, markup included, for the rows to stand in line."""
    return len(_MARKS[row.verdict]) + len("prevents") - len(row.verdict)
