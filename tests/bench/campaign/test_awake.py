import os
import struct
import sys
import time

import click
import psutil
import pytest
from click.testing import CliRunner

from bench import awake, cli, provenance

LONGEST_US = 2_000_000_000  # the kernel's own limit, that is none


@pytest.fixture
def device(tmp_path, monkeypatch):
    """What the kernel has, as files of the test's own."""
    monkeypatch.setattr(awake, "DEVICE", tmp_path / "cpu_dma_latency")
    monkeypatch.setattr(awake, "DRIVER", tmp_path / "current_driver")
    awake.DEVICE.write_bytes(struct.pack("i", LONGEST_US))
    awake.DRIVER.write_text("haltpoll\n")
    return awake.DEVICE


def test_processors_are_kept_awake_by_a_limit_of_0(device):
    assert not awake.kept()
    with awake.processors():
        assert device.read_bytes() == struct.pack("i", 0)
        assert awake.kept()


def test_limit_holds_nothing_where_the_kernel_knows_no_sleep_states(device):
    awake.DRIVER.write_text("none\n")
    with awake.processors():
        assert not awake.kept()


def test_kernel_without_such_a_limit_changes_nothing(device):
    device.unlink()
    with awake.processors():
        assert not awake.kept()
    assert not device.exists()


def test_this_kernel_lets_its_processors_sleep_again_afterwards():
    before = awake.kept()
    with awake.processors():
        # Nobody but root may: then it stays as it was.
        assert awake.kept() or os.geteuid() != 0 or not awake.DEVICE.exists()
    assert awake.kept() == before


@pytest.mark.parametrize(("name", "expected"), [("run", "awake"), ("list", "asleep")])
def test_command_that_measures_keeps_them_awake_and_says_so(name, expected, device, monkeypatch):
    said = []

    @click.command()
    def command():
        said.append(provenance.machine(provenance.Pinning(None, None))["idle_processors"])

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda *_: command)
    assert CliRunner().invoke(cli.main, [name]).exit_code == 0
    assert said == [expected]


def test_every_command_that_measures_is_one():
    assert set(cli.COMMANDS) >= cli.MEASURING


def test_round_trips_that_are_killed_leave_no_process_behind(start):
    program = psutil.Process(start(sys.executable, "-m", "bench.awake", cwd=provenance.PROJECT).pid)
    while not (others := program.children()):
        time.sleep(0.02)
    program.kill()
    others[0].wait(timeout=10)


def test_report_says_it_of_a_campaign_that_says_it():
    machine = {"cpu": "Some CPU", "usable_processors": 2, "kernel": "Linux 6"}
    assert provenance.described(machine) == "Some CPU, 2 processors, Linux 6"
    kept = provenance.described(machine | {"idle_processors": "awake"})
    assert kept == "Some CPU, 2 processors, kept awake, Linux 6"
    assert provenance.described(machine | {"idle_processors": "asleep"}) == (
        "Some CPU, 2 processors, Linux 6"
    )
