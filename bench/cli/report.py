"""``python -m bench report`` and ``compare``: what was found, and what an upgrade changed."""

from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

import click
from rich.console import Console

if TYPE_CHECKING:
    from bench.compare import Difference

FOLDER = click.Path(path_type=Path)


# The file that makes a folder the results of a study -> what reads it, and writes its report.
STUDIES = {
    "layers.json": ("bench.layers.results:read", "bench.layers.page:publish"),
    "study.json": ("bench.balancing.publish:found_in", "bench.balancing.publish:publish"),
    "faults.json": ("bench.faults.page:read", "bench.faults.page:write"),
    "fanout.json": ("bench.fanout.results:read", "bench.fanout.page:publish"),
    "baselines.json": ("bench.baselines.results:read", "bench.baselines.page:publish"),
    "proof.json": ("channels1.proof_page:read", "channels1.proof_page:publish"),
}


@click.command()
@click.argument("folder", type=FOLDER)
def report(folder: Path) -> None:
    """Write the report on the results in FOLDER again; of a campaign, print the verdict."""
    for file, names in STUDIES.items():
        if (folder / file).is_file():
            read, publish = map(resolve_name, names)
            publish(read(folder), folder)
            click.echo(folder / "README.md")
            return
    from bench.report import publish
    from bench.results import read_results
    from bench.tables import verdict_table

    page = publish(folder)
    console = Console()
    console.print(verdict_table(read_results(folder).summary))
    console.print(f"\n{page}", soft_wrap=True)


@click.command()
@click.argument("before", type=FOLDER)
@click.argument("after", type=FOLDER)
def compare(before: Path, after: Path) -> None:
    """Say what changed from the campaign in BEFORE to the one in AFTER.

    The interval is the 95 % interval of the ratio. Where it contains 1, or ends no further from 1
    than the control differs by from itself, it tells no difference and is marked by ≈. It takes
    four valid rounds on either side.
    """
    from bench.compare import compare as compared
    from bench.compare import comparison_table
    from bench.results import read_results

    found = compared(read_results(before).summary, read_results(after).summary)
    console = Console()
    for warning in found.warnings:
        console.print(f"[bold yellow]Warning:[/] {warning}", highlight=False)
    console.print(_versions(found.versions), highlight=False)
    console.print(comparison_table(found))


def _versions(differences: "tuple[Difference, ...]") -> str:
    if not differences:
        return "The versions are the same."
    changes = (f"{one.name} {one.before or '–'} → {one.after or '–'}" for one in differences)
    return "Versions: " + ", ".join(changes)
