"""docs/2016-stack.md says what is really installed, and names every variant."""

import re

import pytest

from bench.environment import ROOT
from bench.variants import STACKS, VARIANTS

PAGE = (ROOT / "docs" / "2016-stack.md").read_text()
PRETTY = {"channels": "Channels", "daphne": "Daphne"}


def measured(requirements: str) -> dict[str, str]:
    """Return package -> version of the first section of a requirements file."""
    text = (ROOT / "channels1" / requirements).read_text()
    section = text.partition("# What is measured\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^(\w+)==([\d.]+)", section, re.MULTILINE))


@pytest.mark.parametrize("requirements", ["requirements.txt", "requirements-2016.txt"])
def test_page_states_the_versions_that_are_installed(requirements):
    pins = measured(requirements)
    assert len(pins) == 6
    for package, version in pins.items():
        assert f"{PRETTY.get(package, package)} {version}" in PAGE


def test_page_names_every_variant_and_how_to_make_its_environment():
    for variant in VARIANTS.values():
        if variant.stack != "today":
            assert f"`{variant.name}`" in PAGE
            assert f"`{STACKS[variant.stack].made_by}`" in PAGE
