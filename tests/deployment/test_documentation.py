"""docs/deploying.md against the code: what it lists is what there is."""

import re

import pytest

from bench import environment as deploy
from bench.cli import COMMANDS
from bench.environment import ROOT, configuration
from bench.variants import LAYERS, VARIANTS, resolve

TEXT = (ROOT / "docs" / "deploying.md").read_text()


def table(heading):
    """Return the rows of the table under ``heading``, as lists of cells."""
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+) \|$", section, re.MULTILINE)
    return [row.split(" | ") for row in rows[1:]]


def test_every_variant_in_one_process_is_described():
    described = [row[0].strip("`") for row in table("Which one")]
    usual = {"stack": "today", "middleware": "stock", "handler": "django", "delivery": "hub"}
    today = [one for one in VARIANTS.values() if usual.items() <= one.factors().items()]
    assert sorted(described) == sorted(one.name for one in today if one.processes == 1)


def test_workers_are_as_many_as_the_table_says():
    said = {layer.strip("`"): (workers, why) for layer, workers, why in table("Several processes")}
    assert set(said) == {name for name, layer in LAYERS.items() if layer.crosses_processes}
    for name, (workers, why) in said.items():
        reason = LAYERS[name].one_worker_because
        assert (workers == "1") == (reason is not None)
        assert reason in (None, why)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("listen backlog", f"{deploy.BACKLOG}"),
        ("idle kept-alive connection", f"{deploy.KEEP_ALIVE_S} s"),
        ("largest WebSocket message", f"{deploy.MESSAGE_BYTES} bytes"),
        ("to finish when stopped", f"{deploy.GRACE_S} s"),
    ],
)
def test_settings_have_the_values_of_the_table(setting, value):
    said = {row[0]: row[1] for row in table("What every server was told, and why")}
    assert said[setting] == value


def test_what_to_change_is_what_is_printed():
    shown = "".join(
        configuration(resolve(name))["supervisord.conf"] for name in ("daphne-ipc", "daphne-redis")
    )
    for row in table("Taking one home"):
        assert row[0].strip("`") in shown


def test_commands_are_commands():
    assert set(re.findall(r"(?:python -m )?\bbench ([a-z]+)\b", TEXT)) <= set(COMMANDS)
