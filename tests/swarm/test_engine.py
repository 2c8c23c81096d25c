"""Where no engine can be started."""

import os

import pytest

from bench import ports
from bench.environment import environment
from bench.errors import BadInput
from bench.swarm import engine, image
from bench.variants import SWARM_VARIANTS, VARIANTS, Variant, resolve


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH of one folder, with all that an engine needs in it; and a user who may start one."""
    for name in ("dockerd", "containerd", "docker", "nft"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(engine, "BRIDGE", "no-such-bridge")
    return tmp_path


def test_engine_that_is_not_installed_is_named_with_the_command_that_installs_it(programs):
    (programs / "dockerd").unlink()
    with pytest.raises(BadInput, match=r"dockerd is missing.*apt-get install docker\.io"):
        engine.require()


def test_engine_needs_root(programs, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BadInput, match="sudo make swarm-test"):
        engine.require()


def test_engine_needs_a_program_that_tells_the_firewalls_rules(programs):
    (programs / "nft").unlink()
    with pytest.raises(BadInput, match="apt-get install iptables"):
        engine.require()


def test_engine_needs_its_ports_to_be_free(programs, monkeypatch):
    asked = []
    monkeypatch.setattr(ports, "require_free", asked.append)
    engine.require()
    assert asked == [ports.SWARM, ports.SWARM_MANAGER, ports.SWARM_GOSSIP]


def test_engine_keeps_away_from_a_swarm_that_is_there(programs, monkeypatch):
    monkeypatch.setattr(engine, "BRIDGE", "lo")
    with pytest.raises(BadInput, match="in a Swarm already"):
        engine.require()


def test_images_that_must_be_made_need_a_program(programs, monkeypatch, tmp_path):
    monkeypatch.setattr(image, "ARCHIVES", tmp_path)
    monkeypatch.delenv("SWARM_IMAGES", raising=False)
    with pytest.raises(BadInput, match="apt-get install debootstrap"):
        image.require()
    image.debian_archive().touch()
    image.require()


def test_variants_in_containers_are_found_by_their_names_and_apart_from_the_others():
    assert resolve("daphne-redis-swarm-x8") is SWARM_VARIANTS["daphne-redis-swarm-x8"]
    assert not SWARM_VARIANTS.keys() & VARIANTS.keys()
    assert all(name == variant.name for name, variant in SWARM_VARIANTS.items())


@pytest.mark.parametrize(
    "factors",
    [
        {"server": "daphne", "layer": "ipc"},
        {"server": "daphne", "layer": "redis", "sharing": "ports"},
        {"server": "granian", "layer": "redis"},
    ],
)
def test_variant_that_containers_cannot_be_is_refused(factors):
    with pytest.raises(ValueError, match="swarm"):
        Variant(processes=4, proxy="swarm", **factors)


def test_variant_in_containers_is_none_of_supervisord():
    with pytest.raises(BadInput, match=r"docs/swarm\.md"):
        environment(SWARM_VARIANTS["daphne-redis-swarm-x4"])
