"""``bench check``: each limit of the machine, and whether it prevents a campaign."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from bench import check
from bench.check import Facts, Process, prevented, rows
from bench.cli import check as cli

GOOD = Facts(
    files_soft=20_000,
    files_hard=20_000,
    somaxconn=4096,
    syn_backlog=4096,
    port_range=(32768, 60999),
    tw_reuse=2,
    time_wait=12,
    pipe_pages=16384,
    datagrams=512,
    overcommit=1,
    steal=0.0,
    cores=4,
    governor="performance",
    kept_awake=True,
    slowness=None,
    busy=(),
    ports_held={},
    missing={},
    socket_root="",
)


def test_rows_of_a_machine_without_limits_are_all_ok():
    found = rows(GOOD)
    assert {row.verdict for row in found} == {"ok"}
    assert not prevented(found)


@pytest.mark.parametrize(
    ("changed", "name", "verdict", "command"),
    [
        ({"files_hard": 8192}, "file handles, hard", "advice", "limits.conf"),
        ({"files_hard": 1024}, "file handles, hard", "prevents", "limits.conf"),
        ({"files_soft": 1024}, "file handles, soft", "advice", "ulimit -n 4096"),
        ({"somaxconn": 128}, "somaxconn", "advice", "sysctl -w net.core.somaxconn=2048"),
        ({"syn_backlog": 512}, "SYN backlog", "advice", "net.ipv4.tcp_max_syn_backlog=2048"),
        ({"port_range": (50_000, 60_999)}, "local ports", "advice", "ip_local_port_range"),
        ({"time_wait": 20_000, "tw_reuse": 0}, "connections in TIME_WAIT", "prevents", "tw_reuse"),
        ({"pipe_pages": 1024}, "pipe pages for each user", "advice", "fs.pipe-user-pages-soft"),
        ({"datagrams": 1}, "datagrams queued", "advice", "net.unix.max_dgram_qlen"),
        ({"overcommit": 0}, "memory overcommit (Redis)", "advice", "vm.overcommit_memory=1"),
        ({"cores": 1}, "cores", "advice", "a machine with more"),
        ({"steal": 0.02}, "CPU steal, now", "advice", "another host"),
        ({"governor": "powersave"}, "CPU governor", "advice", "cpupower"),
        ({"kept_awake": False}, "idle processors, measuring", "advice", "as root"),
        ({"slowness": 1.5}, "Python", "advice", "PYTHON=/usr/bin/python3"),
        ({"busy": (Process(7, "cc", 0.5),)}, "other processes, cores", "advice", "ps -fp 7"),
        ({"ports_held": {8000: "pid 7 (x)"}}, "port 8000", "prevents", "stop that process"),
        ({"missing": {"redis-server": "apt-get"}}, "redis-server", "prevents", "apt-get"),
        ({"socket_root": "too long"}, "path of the project", "prevents", "shorter path"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_row_of_a_limit_names_it_with_the_command(changed, name, verdict, command):
    found = rows(replace(GOOD, **changed))
    (row,) = [row for row in found if row.verdict != "ok"]
    assert (row.name, row.verdict) == (name, verdict)
    assert command in row.command
    assert prevented(found) == (verdict == "prevents")


def test_rows_of_a_kernel_that_does_not_say_are_unknown_and_ok():
    silent = replace(
        GOOD, somaxconn=None, port_range=None, tw_reuse=None, steal=None, governor=None
    )
    found = {row.name: row for row in rows(silent)}
    assert found["somaxconn"].present == "unknown"
    assert {row.verdict for row in found.values()} == {"ok"}


def test_time_wait_is_no_matter_where_the_kernel_takes_ports_again():
    assert not prevented(rows(replace(GOOD, time_wait=20_000, tw_reuse=2)))


def test_facts_are_read_from_this_machine(monkeypatch):
    monkeypatch.setattr(check, "_LOOK_S", 0.05)
    facts = check.read()
    assert facts.files_hard >= facts.files_soft > 0
    assert facts.cores >= 1
    assert facts.steal is None or 0 <= facts.steal <= 1


@pytest.mark.parametrize(("facts", "code"), [(GOOD, 0), (replace(GOOD, files_hard=1024), 1)])
def test_command_exits_with_1_where_something_prevents_a_campaign(monkeypatch, facts, code):
    monkeypatch.setattr(cli, "read", lambda: facts)
    result = CliRunner().invoke(cli.check)
    assert result.exit_code == code
    assert result.output.count("needed:") == len(rows(facts))
    assert ("prevents" in result.output) == bool(code)
