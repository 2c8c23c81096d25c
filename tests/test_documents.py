"""What the documents say against what is there."""

import re
import subprocess
from pathlib import Path

import pytest

from bench import front_page
from bench.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not path.relative_to(ROOT).parts[0].startswith((".", "run", "build"))
    and "local" not in path.relative_to(ROOT).parts
    and "node_modules" not in path.parts
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMAND = re.compile(r"python -m bench ([a-z]+)")
MAKE = re.compile(r"`make ([a-z0-9-]+)`|^make ([a-z0-9-]+)", re.MULTILINE)


def name(path):
    return str(path.relative_to(ROOT))


def heading_anchors(text):
    headings = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_document_links_to_what_exists(document):
    for target in LINK.findall(document.read_text()):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        linked = (document.parent / path).resolve() if path else document
        assert linked.exists(), f"{name(document)} links to {target}"
        if anchor:
            assert anchor in heading_anchors(linked.read_text()), f"{target} has no such heading"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_document_names_commands_that_exist(document):
    text = document.read_text()
    assert set(COMMAND.findall(text)) <= set(COMMANDS)
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {one or other for one, other in MAKE.findall(text)} <= targets


def test_front_page_says_what_the_code_and_the_newest_campaign_say():
    readme = (ROOT / "README.md").read_text()
    assert front_page.fill(readme, front_page.parts()) == readme, "run: make front-page"


@pytest.mark.parametrize(
    ("document", "parts"),
    [
        ("channels-ipc.md", front_page.layer_parts),
        ("fan-out.md", front_page.fanout_parts),
        ("balancing.md", front_page.balancing_parts),
    ],
)
def test_page_says_what_the_newest_campaign_says(document, parts):
    page = (ROOT / "docs" / document).read_text()
    assert front_page.fill(page, parts()) == page, "run: make front-page"


def test_front_page_shows_the_newest_campaign(tmp_path):
    for day in ("2026-01-02", "2026-01-10", "2026-01-11-layers", "local"):
        (tmp_path / day).mkdir()
        (tmp_path / day / "campaign.json").touch()
    (tmp_path / "2027-01-01").mkdir()
    assert front_page.newest(tmp_path) == tmp_path / "2026-01-10"
    assert front_page.newest(tmp_path / "local") is None


def test_front_page_without_a_place_for_a_part_is_an_error():
    with pytest.raises(KeyError, match="<!-- b -->"):
        front_page.fill("<!-- a -->\n<!-- /a -->", {"b": "text"})


def test_front_page_fills_each_part_where_it_belongs():
    text = "1\n<!-- a -->\nold\n<!-- /a -->\n2\n<!-- b -->\n<!-- /b -->\n"
    filled = front_page.fill(text, {"a": r"new \1", "b": "b"})
    assert filled == "1\n<!-- a -->\nnew \\1\n<!-- /a -->\n2\n<!-- b -->\nb\n<!-- /b -->\n"


def test_tree_names_no_machine_and_no_registry():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    # In pieces, so that this file does not find itself.
    hosts = re.compile("pypi" + r"\.org|registry" + r"\.npmjs|proxy" + r"\.golang")
    homes = re.compile("/root" + r"/\.|/home" + r"/\w+/\.")
    for path in tracked:
        if (ROOT / path).is_file() and not path.endswith((".png", ".gz")):
            text = (ROOT / path).read_text(errors="replace")
            for found in (hosts.search(text), homes.search(text)):
                assert found is None, f"{path} names {found and found.group()}"
