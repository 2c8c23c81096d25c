"""docs/swarm.md against what it describes."""

import re

from bench.environment import ROOT
from bench.variants import SWARM_VARIANTS

DOCUMENT = (ROOT / "docs" / "swarm.md").read_text()
COMPOSE = (ROOT / "compose.yaml").read_text()


def rows(heading):
    """Return the first two cells of each row of the table that begins with ``heading``."""
    table = re.search(rf"^\| {heading} .*\n\|[-|]+\n((?:\|.*\n)+)", DOCUMENT, re.MULTILINE)[1]
    return {
        cells[1].strip(" `"): cells[2].strip(" `")
        for cells in (line.split("|") for line in table.splitlines())
    }


def test_document_has_every_variable_with_its_default():
    defaults = {
        name: default if kind == ":-" else "none"
        for name, kind, default in re.findall(r"\$\{(\w+)(:-|:\?)([^}]*)\}", COMPOSE)
    }
    told = rows("variable")
    assert told.keys() == defaults.keys()
    in_words = {"SWARM_COMMAND", "SWARM_HAPROXY_IMAGE", "SWARM_REDIS_IMAGE"}
    for name in told.keys() - in_words:
        assert told[name] == defaults[name], name


def test_document_has_every_service_with_its_number(compose):
    told = rows("service")
    assert told.keys() == compose["services"].keys()
    for name, service in compose["services"].items():
        assert told[name] == str(service["deploy"].get("replicas", 1)), name


def test_document_names_variants_that_exist():
    named = set(re.findall(r"`([a-z-]+-swarm-x\d)`", DOCUMENT))
    assert named == {name for name in SWARM_VARIANTS if name.endswith("x4")}
