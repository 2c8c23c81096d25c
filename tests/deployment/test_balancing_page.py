"""docs/balancing.md against the code: its figures are those of the configurations."""

import re
from collections import Counter

import pytest

from bench import environment as deploy
from bench import ports, proxies
from bench.environment import ROOT
from bench.faults.page import read
from bench.faults.traffic import SOCKETS
from bench.variants import VARIANTS

TEXT = (ROOT / "docs" / "balancing.md").read_text()


def table(heading):
    """Return the rows of the first table under ``heading``: first cell -> the others."""
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    block = re.search(r"(?:^\|.*\|\n)+", section, re.MULTILINE)[0]
    rows = [line.strip("| \n").split(" | ") for line in block.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def measured(kind):
    """Return the rows of the study's tables: first cell -> (more, less, not told apart, range)."""
    block = TEXT.split(f"<!-- {kind} -->")[1].split(f"<!-- /{kind} -->")[0]
    row = r"^\| (.+?) \| (\d+) more, (\d+) less, (\d+) not told apart: (\S+ to \S+) \|"
    return {
        name: (int(more), int(less), int(alike), span)
        for name, more, less, alike, span in re.findall(row, block, re.MULTILINE)
    }


def test_choice_of_a_front_follows_from_what_was_measured():
    http, websocket = measured("http"), measured("websocket")
    section = TEXT.split("## Which one\n")[1].split("\n## ")[0]
    pairs, sockets = sum(http["nginx"][:3]), sum(websocket["nginx"][:3])
    fronts = [http[name][:3] for name in ("apache", "nginx", "haproxy", "swarm")]
    assert fronts == [(0, pairs, 0)] * 4
    for said in (
        f"fewer HTTP requests in {pairs} of {pairs} pairs, nginx {http['nginx'][3]} times",
        f"over WebSocket nginx carries less in {websocket['nginx'][1]} of {sockets} pairs, "
        f"haproxy in {websocket['haproxy'][1]}",
        f"Apache does less than nginx in {http['apache against nginx'][1]} of {pairs} pairs and "
        f"more in {http['apache against nginx'][0]}",
        f"not told apart in {http['nginx against haproxy'][2]} of {pairs}, though all estimates "
        f"are on nginx's side ({http['nginx against haproxy'][3]})",
        f"not told apart in {websocket['nginx against haproxy'][2]} of {sockets} pairs over",
        f"less than nginx in {http['nginx against swarm'][0]} of {pairs} pairs over HTTP and in "
        f"{websocket['nginx against swarm'][0]} of {sockets} over WebSocket, and more in "
        f"{http['nginx against swarm'][1] + websocket['nginx against swarm'][1]} of either",
    ):
        assert said in section
    killed = {name: Counter() for name in proxies.PROXIES}
    for one in read(ROOT / "results" / "2026-11-23-faults").outcomes:
        if one.fault == "kill":
            proxy = VARIANTS[one.variant].proxy
            killed[proxy].update(lost=one.requests_lost, asked=one.requests)
    said = {name: f"{count['lost']} of {count['asked']:,}" for name, count in killed.items()}
    assert (
        f"was killed it lost {said['apache']} requests, nginx {said['nginx']} and haproxy "
        f"{said['haproxy']}" in section
    )
    failed = re.findall(r"^\|.* \| ([\d,]+) of [\d,]+ \|$", TEXT, re.MULTILINE)
    assert len(failed) == 13  # columns of both tables
    assert set(failed) == {"0"}


def test_ports_are_those_of_the_table():
    assert [int(row[0].split()[0]) for row in table("Names and ports").values()] == [
        ports.APPLICATION,
        ports.GUNICORN_ONE_WORKER,
        ports.NGINX,
        ports.HAPROXY,
        ports.APACHE,
        ports.APPLICATION_FIRST,
    ]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("silence of the application", f"{proxies.SILENCE_S} s"),
        ("a client's headers", f"{proxies.REQUEST_S} s"),
        ("a client's body", f"{proxies.REQUEST_S} s"),
        ("largest request body", f"{proxies.BODY_BYTES} bytes"),
        ("reaching a process", f"{proxies.CONNECT_S} s"),
        ("idle connection to a process", f"{proxies.IDLE_S} s"),
        ("listen backlog", f"{deploy.BACKLOG}"),
        ("open connections after a reload", f"{proxies.DRAIN_S} s"),
    ],
)
def test_settings_have_the_values_of_the_table(setting, value):
    assert table("What all three do")[setting][0] == value


@pytest.mark.parametrize("proxy", proxies.PROXIES.values(), ids=proxies.PROXIES)
def test_words_that_are_explained_are_in_the_configuration(proxy):
    """The code of each bullet point, up to its values."""
    heading = {"nginx": "nginx", "haproxy": "haproxy", "apache": "Apache"}[proxy.name]
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    text = proxies.rendered(proxy, 8008, (8010, 8011))
    explained = re.findall(r"^- `([^`]+)`", section, re.MULTILINE)
    assert len(explained) > 4
    for words in explained:
        assert all(part.strip() in text for part in words.split("..."))


def test_limit_and_sockets_are_those_of_the_code():
    assert f"above {deploy.MESSAGE_BYTES} bytes" in TEXT
    assert f"and {SOCKETS} open sockets" in TEXT
    assert f"{proxies.APACHE_PROCESSES} processes of {proxies.APACHE_THREADS}" in TEXT


def test_variants_that_are_named_exist():
    named = re.findall(r"\b(?:daphne|uvicorn|gunicorn)-[a-z0-9-]*x4(?:-ports)?", TEXT)
    assert named
    assert set(named) <= set(VARIANTS)
