"""The suite itself: what it claims of the layers, and that others can use it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from channels.layers import InMemoryChannelLayer
from channels_redis.core import RedisChannelLayer
from redis.asyncio import ConnectionPool
from redis.exceptions import TimeoutError as RedisTimeoutError

from . import matrix
from .base import is_quiet, parameter, receive, unique
from .layers import INMEMORY, IPC, SUBJECTS
from .participant import close
from .processes import Processes

PROJECT = Path(__file__).parents[2]


def test_page_has_the_matrix_of_the_suite() -> None:
    page = matrix.PAGE.read_text()
    assert matrix.written(page, matrix.markdown(SUBJECTS)) == page, (
        "run `python -m tests.conformance.matrix`"
    )


def test_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="the page has no"):
        matrix.written("# Another page\n", "| table |")


def test_rules_each_have_a_sentence_of_their_own() -> None:
    sentences = [rule.sentence for rule in matrix.rules()]
    assert all(sentence.endswith(".") for sentence in sentences)
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_known_breaches_are_of_rules_that_apply(subject) -> None:
    applicable = {rule.name for rule in matrix.rules() if matrix.applies(subject, rule.test)}
    assert set(subject.breaks) <= applicable


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_no_rule_may_go_either_way(subject) -> None:
    for rule in matrix.rules():
        for mark in parameter(subject, rule.test).marks:
            assert mark.name != "xfail" or mark.kwargs["strict"], rule.name


def test_ipc_breaks_one_rule_on_purpose() -> None:
    assert list(IPC.breaks) == ["test_capacity_is_shared_over_the_prefix"]


async def test_inmemory_message_stays_in_its_process() -> None:
    """What makes the rules about several processes not applicable to it."""
    layer, processes = InMemoryChannelLayer(), Processes()
    try:
        (other,) = await processes.take(INMEMORY.backend, {}, 1)
        channel = unique()
        await other.send(channel, {"type": "x"})
        assert await is_quiet(layer, channel)
        assert await other.receive(channel) == {"type": "x"}
    finally:
        processes.stop()


@pytest.mark.redis
async def test_redis_idle_receive_with_the_default_timeout_fails(redis_socket: Path) -> None:
    """Why the suite, the settings and the benchmark set socket_timeout to None."""
    address = f"unix://{redis_socket}"
    assert 0 < ConnectionPool.from_url(address).make_connection().socket_timeout <= 5
    layer = RedisChannelLayer(hosts=[{"address": address, "socket_timeout": 0.3}])
    try:
        with pytest.raises(RedisTimeoutError, match="Timeout reading"):
            await receive(layer, unique(), 3)
    finally:
        await close(layer)


LAYER = """
from channels.layers import InMemoryChannelLayer

class MyLayer(InMemoryChannelLayer):
    sent = 0

    async def send(self, channel, message):
        self.sent += 1
        if self.sent % 7:
            await super().send(channel, message)

class Whole(InMemoryChannelLayer):
    pass
"""


def documented_lines() -> str:
    """Return the test module that the page tells a layer's author to write."""
    page = matrix.PAGE.read_text()
    (code,) = re.findall(r"```python\n(from conformance .*?)```", page, re.DOTALL)
    return code


def run_elsewhere(folder: Path, module: str, rules: str) -> str:
    """Run ``module`` as a project of its own would, and return pytest's report."""
    (folder / "myproject").mkdir()
    (folder / "myproject" / "layers.py").write_text(LAYER)
    (folder / "test_my_layer.py").write_text(module)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join((str(PROJECT / "tests"), str(folder))),
    }
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-c", os.devnull, "--rootdir", ".", "-k", rules],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


def test_suite_pointed_at_by_three_lines_catches_a_layer_that_loses_messages(
    tmp_path: Path,
) -> None:
    lines = documented_lines()
    assert len([line for line in lines.splitlines() if line.strip()]) == 3
    report = run_elsewhere(tmp_path, lines, "order_is_kept_on or extensions_are_listed")
    assert "PASSED test_my_layer.py::TestMyLayer::test_extensions_are_listed[mine]" in report
    assert "FAILED test_my_layer.py::TestMyLayer::test_order_is_kept_on" in report
    assert "1 failed, 1 passed" in report, report


def test_suite_pointed_at_by_three_lines_passes_a_layer_that_keeps_the_rules(
    tmp_path: Path,
) -> None:
    lines = documented_lines().replace('MyLayer"', 'Whole"')
    report = run_elsewhere(tmp_path, lines, "order_is_kept_on or every_type")
    assert "2 passed" in report, report


def test_suite_fails_a_breach_that_is_no_longer_one(tmp_path: Path) -> None:
    """Reasons stay true: what is said to be broken must be."""
    known = '{}, {"test_extensions_are_listed": "it lists none"}'
    lines = re.sub(r", \{.*\}\)", f", {known})", documented_lines())
    report = run_elsewhere(tmp_path, lines, "extensions_are_listed")
    assert "XPASS(strict)" in report, report
    assert "1 failed" in report
