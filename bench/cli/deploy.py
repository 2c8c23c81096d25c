"""``bench list``, ``show``, ``env``, ``up`` and ``down``: deployments, by hand."""

import os
import shlex
from pathlib import Path

import click
from click.shell_completion import CompletionItem
from rich.console import Console
from rich.table import Table

from bench import proxies, remains, supervise
from bench.environment import check_root, configuration
from bench.errors import BadInput
from bench.variants import HEADLINE, LAYERS, SWARM_VARIANTS, VARIANTS, Variant, resolve


class VariantName(click.ParamType[Variant]):
    """A variant by its name, completed by the shell; an unknown one names the nearest."""

    name = "variant"

    def convert(
        self, value: str | Variant, param: click.Parameter | None, ctx: click.Context | None
    ) -> Variant:
        return value if isinstance(value, Variant) else resolve(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        names = (name for name in VARIANTS if name.startswith(incomplete))
        return [CompletionItem(name) for name in names]


variant_argument = click.argument("variant", type=VariantName())


@click.command()
def list_variants() -> None:
    """List every variant with its factors."""
    Console().print(variant_table())


def variant_table() -> Table:
    """Return the table of all variants; the headline campaign's are marked."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("variant", no_wrap=True, style="bold")
    for heading in ("server", "layer", "middleware"):
        table.add_column(heading, no_wrap=True)
    for heading in ("processes", "workers"):
        table.add_column(heading, justify="right")
    for variant in (*VARIANTS.values(), *SWARM_VARIANTS.values()):
        table.add_row(*_row(variant), style="green" if variant in HEADLINE else None)
    reasons = (
        f"{one.name}: {one.one_worker_because}" for one in LAYERS.values() if one.one_worker_because
    )
    table.caption = "\n".join(
        (
            "green: the headline campaign",
            "swarm: in containers, which campaigns start and `up` does not: docs/swarm.md",
            "one worker only:",
            *reasons,
        )
    )
    table.caption_justify = "left"
    return table


def _row(variant: Variant) -> tuple[str, ...]:
    workers = str(variant.workers or "-")
    names = (variant.name, variant.server, variant.layer, variant.middleware)
    return (*names, str(variant.processes), workers)


@click.command()
@variant_argument
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the files below this folder, the root of a project, and print their names.",
)
def show(variant: Variant, into: Path | None) -> None:
    """Print the complete configuration of VARIANT, every value filled in.

    What it prints is one supervisord.conf, to be copied to a server of your own, and after it what
    the variant's proxy reads, which --into puts into a file of its own.
    """
    path = supervise.search_path_for_others(variant)
    files = configuration(variant, redis_url=os.environ.get("REDIS_URL"), path=path)
    proxy = {f"run/{name}": text for name, text in proxies.files(variant).items()}
    if into is not None:
        _write(into, files | proxy)
        return
    click.echo(files.pop(next(iter(files))), nl=False)
    for name, text in proxy.items():
        click.echo(f"\n# ==> {name} <==\n{text}", nl=False)
    for name in files:
        click.echo(f"it needs {name} of this project beside it", err=True)


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write them below ``folder``; raise ``BadInput``, and write none, where one is there."""
    if there := [folder / name for name in files if (folder / name).exists()]:
        raise BadInput(f"--into {folder}: {there[0]} is there already: move it, or name another")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        click.echo(path)


@click.command()
@variant_argument
def env(variant: Variant) -> None:
    """Print shell exports under which a bare supervisord runs VARIANT.

    Use it as: eval "$(python -m bench env daphne-ipc)" && supervisord. It also makes the folder
    that the logs go to.
    """
    check_root()
    remains.LOGS.mkdir(parents=True, exist_ok=True)
    proxies.write(variant, remains.RUN)
    for name, value in supervise.exports(variant, os.environ).items():
        click.echo(f"export {name}={shlex.quote(value)}")


@click.command()
@variant_argument
def up(variant: Variant) -> None:
    """Start VARIANT and leave it running."""
    try:
        deployment = supervise.up(variant)
    except supervise.StartFailed as failure:
        raise Failed(f"{failure.reason}\n{failure.log_tail}") from failure
    told = deployment.identity
    click.echo(f"{variant.name} is ready at {deployment.base_url}")
    click.echo(f"{told['server']} {told['server_version']}, supervisord is pid {deployment.pid}")
    click.echo("supervisorctl status looks at it; python -m bench down stops it")


class Failed(click.ClickException):
    """A variant that does not start is no bad input: exit code 1, and the log."""

    exit_code = 1


@click.command()
def down() -> None:
    """Stop the variant that runs, whoever started it in this checkout."""
    name = supervise.down()
    click.echo(f"{name} is stopped" if name else "nothing is up")
