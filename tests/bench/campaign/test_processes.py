import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import processes
from bench.processes import Process

STAT = (
    "4242 (a (odd) name) S 17 4242 4242 0 -1 4194560 5000 900 0 0 150 50 30 20 20 0 4 0 987654 "
    "90000000 2500 18446744073709551615 0 0 0\n"
)


def process(pid: int, parent: int, own_s: float = 0.0, reaped_s: float = 0.0) -> Process:
    return Process(pid, parent, 1, own_s, 0.0, reaped_s, 0.0, 0)


def test_stat_is_parsed_whatever_the_name() -> None:
    ticks_s = os.sysconf("SC_CLK_TCK")
    parsed = processes.parsed(STAT)
    assert (parsed.pid, parsed.parent, parsed.started_ticks) == (4242, 17, 987654)
    assert (parsed.user_s, parsed.system_s) == (150 / ticks_s, 50 / ticks_s)
    assert (parsed.reaped_user_s, parsed.reaped_system_s) == (30 / ticks_s, 20 / ticks_s)
    assert parsed.name == "a (odd) name"
    assert parsed.rss_bytes == 2500 * os.sysconf("SC_PAGE_SIZE")
    assert parsed.whole_s == pytest.approx(250 / ticks_s)


def test_threads_of_the_kernel_that_serve_the_load_are_told_from_programs_of_that_name() -> None:
    softirq = STAT.replace("a (odd) name", "ksoftirqd/1")
    assert processes.parsed(softirq.replace(" S 17 ", " S 2 ")).is_of_the_load
    assert not processes.parsed(softirq).is_of_the_load
    assert not processes.parsed(STAT.replace(" S 17 ", " S 2 ")).is_of_the_load


def test_read_finds_this_process_and_its_parent() -> None:
    found = processes.read()
    assert found[os.getpid()].parent == os.getppid()
    assert found[os.getpid()].rss_bytes > 1_000_000


def test_read_survives_processes_that_end_in_the_middle(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "stat").write_text(STAT.replace("4242 (", "1 (", 1))
    (tmp_path / "2").mkdir()  # it had ended before its stat was read
    (tmp_path / "self").mkdir()
    assert list(processes.read(proc=tmp_path)) == [1]


def test_read_makes_room_for_others_every_few_processes(tmp_path: Path) -> None:
    for pid in range(1, 41):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(STAT.replace("4242 (", f"{pid} (", 1))
    breaths: list[None] = []
    assert len(processes.read(lambda: breaths.append(None), tmp_path)) == 40
    assert 4 <= len(breaths) <= 10


def test_descendants_are_roots_that_live_and_all_below() -> None:
    family = {one.pid: one for one in (process(1, 0), process(2, 1), process(3, 2), process(4, 1))}
    assert processes.descendants(family, [2]) == {2, 3}
    assert processes.descendants(family, [2, 99]) == {2, 3}
    assert processes.descendants(family, [99]) == set()


def test_pss_of_this_process_is_part_of_its_rss() -> None:
    pss = processes.pss_bytes([os.getpid()])
    assert pss is not None
    assert 1_000_000 < pss <= processes.read()[os.getpid()].rss_bytes * 1.05


def test_pss_of_a_process_that_has_ended_is_left_out() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert processes.pss_bytes([ended.pid]) == 0


def test_pss_is_missing_where_the_kernel_does_not_tell(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    assert processes.pss_bytes([1], tmp_path) is None
