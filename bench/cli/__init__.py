"""``python -m bench``: one command a module, imported only when it is asked for.

A command line that lists the variants has no use for the chart library, and the chart library
takes a second to import.
"""

from importlib import import_module
from typing import Any

import click

from bench import awake
from bench.errors import BadInput

# command -> (module, attribute)
COMMANDS = {
    "list": ("bench.cli.deploy", "list_variants"),
    "show": ("bench.cli.deploy", "show"),
    "env": ("bench.cli.deploy", "env"),
    "up": ("bench.cli.deploy", "up"),
    "down": ("bench.cli.deploy", "down"),
    "check": ("bench.cli.check", "check"),
    "run": ("bench.cli.run", "run"),
    "faults": ("bench.cli.faults", "faults"),
    "report": ("bench.cli.report", "report"),
    "compare": ("bench.cli.report", "compare"),
    "layers": ("bench.cli.layers", "layers"),
    "fanout": ("bench.cli.fanout", "fanout"),
    "http": ("bench.cli.http", "http"),
    "echo": ("bench.cli.echo", "echo"),
    "baselines": ("bench.cli.baselines", "baselines"),
}
MEASURING = {"run", "faults", "layers", "fanout", "http", "echo", "baselines"}


class LazyGroup(click.Group):
    """Imports a command's module when the command is looked up, and turns bad input into exit 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BadInput as error:
            raise OneLine(str(error)) from error


class OneLine(click.ClickException):
    """An error that a person can put right: one line, exit code 2, no traceback."""

    exit_code = 2


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def main(ctx: click.Context) -> None:
    """Deploy Django Channels in many ways, and measure what each of them costs."""
    if ctx.invoked_subcommand in MEASURING:
        ctx.with_resource(awake.processors())
