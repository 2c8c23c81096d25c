"""The keeper of an engine, with an engine that is none."""

import os
import re
import signal
import sys
import time

import psutil
import pytest

from bench.environment import ROOT
from bench.swarm import keeper

# Makes the socket that it was told to, starts a process that outlives it, and waits.
ENGINE = """#!{python}
import os, re, subprocess, sys, time
text = " ".join(sys.argv)
config = re.search(r"--config (\\S+)", text)
found = re.search(r'address = "(.+)"', open(config[1]).read()) if config else None
path = found[1] if found else re.search(r"unix://(\\S+)", text)[1]
subprocess.run(["sh", "-c", "sleep 60 &"])
open(path, "w").close()
time.sleep(60)
"""


def wait_until(condition, log):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail(f"not within 20 s:\n{log.read_text()}")


@pytest.fixture
def folder(tmp_path):
    """A folder for a keeper, beside programs that play dockerd and containerd."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("dockerd", "containerd"):
        (programs / name).write_text(ENGINE.format(python=sys.executable))
        (programs / name).chmod(0o755)
    for name in ("sh", "sleep"):
        (programs / name).symlink_to(f"/bin/{name}")
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept"


@pytest.fixture
def kept(folder, start):
    """A keeper whose engine has started. No program of the firewall's is in its PATH."""
    environment = os.environ | {"PATH": str(folder.parent / "programs")}
    command = (sys.executable, "-m", "bench.swarm.keeper", str(folder))
    with (folder.parent / "log").open("wb") as log:
        return start(*command, cwd=ROOT, env=environment, stderr=log)


def test_keeper_told_to_stop_ends_all_and_says_what_is_left(folder, kept):
    wait_until((folder / keeper.SOCKET).exists, folder.parent / "log")
    below = psutil.Process(kept.pid).children(recursive=True)
    names = [process.name() for process in below]
    # Two programs, and what each of them left behind has come to the keeper.
    assert names.count("sleep") == 2
    orphan = next(process for process in below if process.name() == "sleep")
    orphan.kill()
    orphan.wait(10)  # a zombie would not go
    kept.send_signal(signal.SIGTERM)
    assert kept.wait(20) == 0
    assert not [process for process in below if process.is_running()]
    assert (folder / keeper.DIFFERENCES).read_text() == ""


def test_keeper_whose_engine_does_not_start_leaves_nothing(folder, kept):
    (folder.parent / "programs" / "containerd").write_text(
        f"#!{sys.executable}\nraise SystemExit(3)\n"
    )
    assert kept.wait(30) != 0
    assert (folder / keeper.DIFFERENCES).exists()


def test_keeper_ends_when_its_engine_does(folder, kept):
    wait_until((folder / keeper.SOCKET).exists, folder.parent / "log")
    below = psutil.Process(kept.pid).children()
    next(process for process in below if process.name() == "dockerd").kill()
    assert kept.wait(20) != 0
    assert not [process for process in below if process.is_running()]


def test_engine_keeps_to_its_folder_and_changes_no_firewall(tmp_path):
    command = keeper.engine_command(tmp_path, "group")
    paths = re.findall(r"(?:unix://)?(/\S+)", " ".join(command))
    assert len(paths) >= 6
    assert {path for path in paths if not path.startswith(str(tmp_path))} == {"/group"}
    for off in ("iptables", "ip6tables", "ip-forward", "ip-masq"):
        assert f"--{off}=false" in command
