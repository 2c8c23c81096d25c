"""``python -m bench report`` and ``compare``: what was found, and what an upgrade changed."""

from pathlib import Path

import click
from rich.console import Console

FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("folder", type=FOLDER)
def report(folder: Path) -> None:
    """Write the report on the campaign in FOLDER again, and print its verdict."""
    from bench.report import publish
    from bench.results import read_results
    from bench.tables import verdict_table

    page = publish(folder)
    console = Console()
    console.print(verdict_table(read_results(folder).summary))
    console.print(f"\n{page}", soft_wrap=True)
