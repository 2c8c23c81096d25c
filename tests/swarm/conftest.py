"""What is tested of containers: without an engine always, with one by ``make swarm-test``."""

import re
import tempfile
from pathlib import Path

import pytest
import yaml

from bench.environment import ROOT
from bench.swarm import host


def pytest_collection_modifyitems(config, items):
    """Leave out what starts an engine, unless it is asked for: -m swarm."""
    if "swarm" in config.option.markexpr:
        return
    live = [item for item in items if item.get_closest_marker("swarm")]
    items[:] = [item for item in items if item not in live]
    config.hook.pytest_deselected(items=live)


@pytest.fixture(scope="module")
def untouched():
    """The machine, which must be as it was when all engines have ended."""
    before = host.read()
    yield before
    assert host.differences(before, host.read()) == []
    assert not list(Path(tempfile.gettempdir()).glob("channels-swarm-*"))


@pytest.fixture(scope="session")
def compose_with():
    """compose.yaml with the variables that are given, of which only the secret key must be."""
    text = (ROOT / "compose.yaml").read_text()
    return lambda **given: yaml.safe_load(
        interpolated(text, {"DJANGO_SECRET_KEY": "secret"} | given)
    )


@pytest.fixture(scope="session")
def compose(compose_with):
    return compose_with()


def interpolated(text, values):
    """Return ``text`` with ``${NAME:-default}`` and ``${NAME:?error}`` as Docker fills them in."""

    def value(match):
        name, kind, rest = match.groups()
        assert kind == ":-" or name in values, f"{name} must be given: {rest}"
        return values.get(name) or rest

    return re.sub(r"\$\{(\w+)(:-|:\?)([^}]*)\}", value, text)
