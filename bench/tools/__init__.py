"""The load generators that people use, each with its command line and its output as data."""

from collections.abc import Sequence

from bench.errors import BadInput, unknown
from bench.tools.ab import AB
from bench.tools.hey import HEY
from bench.tools.loadtest import LOADTEST
from bench.tools.locust import LOCUST
from bench.tools.tool import Tool
from bench.tools.wrk import WRK

TOOLS = {tool.name: tool for tool in (LOCUST, LOADTEST, AB, WRK, HEY)}


def chosen(names: Sequence[str]) -> tuple[tuple[Tool, ...], tuple[Tool, ...]]:
    """Return those of ``names`` that are installed, and those that are missing.

    No name stands for all of them. Raises ``BadInput`` for a name that is none, and where a tool
    that was asked for by its name is missing.
    """
    for name in names:
        if name not in TOOLS:
            raise unknown("tool", name, TOOLS)
    wanted = [TOOLS[name] for name in dict.fromkeys(names or TOOLS)]
    found = tuple(tool for tool in wanted if tool.find())
    missing = tuple(tool for tool in wanted if tool not in found)
    if names and missing:
        raise BadInput("; ".join(absence(tool) for tool in missing))
    return found, missing


def absence(tool: Tool) -> str:
    """Return the line that says how to get ``tool``."""
    return f"{tool.name} is not installed: {tool.install}"
