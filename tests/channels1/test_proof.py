"""The proof of docs/2016-stack.md: the arms that are served, what is counted, and the page."""

from dataclasses import replace

import psutil
import pytest

from bench.environment import environment
from bench.records import Bucket, Gate, Load, Sample
from channels1 import proof, proof_page
from channels1.proof import ARMS, per_5s, run_of
from channels1.proof_page import MENDED, SLEEPS, Results, Run

ARM = {arm.name: arm for arm in ARMS}
STEAL = "the hypervisor kept 0.08 cores to itself: its other guests work"
PROVENANCE = {
    "commit": "0123abc",
    "seed": 7,
    "machine": {"cpu": "A CPU", "usable_processors": 2, "kernel": "Linux 6"},
    "pinning": {"server": "1", "generator": None},
}
# arm -> requests in each 5 s, and hung clients, of two rounds
MEASURED = {
    "published": (((400, 200, 100), 9), ((700, 300, 200), 8)),
    "channels": (((1400, 300), 9), ((1500, 300), 9)),
    "semaphore": (((1400, 400), 0), ((1100, 400), 0)),
    "both": (((2000, 2000), 0), ((2000, 1600), 0)),
    "ipc-50ms": (((1000, 1000), 0), ((500, 500), 0)),
    "ipc-1ms": (((4000, 4000), 0), ((3000, 3000), 0)),
    "redis-50ms": (((4000, 4000), 0), ((4000, 4000), 0)),
    "redis-1ms": (((4000, 4000), 0), ((4000, 4000), 0)),
}


def run(arm: str, round_: int, **changed) -> Run:
    replies, hung = MEASURED[arm][round_ - 1]
    versions = {"daphne": "1.4.2", "asgi_ipc": "1", "asgi_redis": "2", "python": "3.11.7"}
    made = Run(arm, round_, 1, replies, hung, faults=(), failure=None, versions=versions)
    return replace(made, **changed)


@pytest.fixture
def results() -> Results:
    runs = tuple(run(arm, round_) for round_ in (1, 2) for arm in MEASURED)
    return Results(
        "2026-01-02T03:04:05+00:00", "2026-01-02T04:00:00+00:00", 2, 15, runs, PROVENANCE
    )


def page(results: Results) -> str:
    return "\n".join(proof_page.page(results))


def test_page_has_the_rows_of_every_arm():
    assert [*MENDED, *(arm for arms in SLEEPS.values() for arm in arms)] == [*ARM]


def test_page_shows_every_round(results):
    lines = page(results).splitlines()
    for line in (
        "| as published | 400, 200, 100 and 700, 300, 200 | 9, 8 of 10 |",
        "| emptied channels removed | 1400, 300 and 1500, 300 | 9 of 10 |",
        "| both | 2000, 2000 and 2000, 1600 | none |",
        "| Daphne 1.4.2 + asgi_ipc 1.4.2 | 1000, 1000 and 500, 500 | 4000, 4000 and 3000, 3000 |",
    ):
        assert line in lines
    assert "daphne 1.4.2, asgi_ipc 1, asgi_redis 2, python 3.11.7.\n" in page(results)
    assert "\n0 of 16 runs do not count" in page(results)
    assert "Interrupted" not in page(results)


def test_what_follows_is_taken_round_by_round(results):
    mended, sleeps = (line for line in page(results).splitlines() if line.startswith("- "))
    assert "14x (8 to 20) as many requests as it does as published" in mended  # of the last 5 s
    assert "4.5x (4 to 5) as many as with the semaphore alone" in mended
    assert "asgi_ipc 1.4.2 answers 5x (4 to 6) as many requests as with the sleep" in sleeps
    assert "0.875x (0.75 to 1) as many as asgi_redis 1.4.3 there" in sleeps


def test_disturbed_round_is_marked_and_draws_no_conclusion(results):
    disturbed = tuple(
        replace(one, faults=(STEAL,)) if (one.arm, one.round) == ("both", 1) else one
        for one in results.runs
    )
    text = page(replace(results, runs=disturbed))
    assert "| both | 2000, 2000† and 2000, 1600 | none |" in text
    assert "8x (8 to 8) as many requests as it does as published" in text
    assert "\n1 of 16 runs do not count" in text


def test_attempt_that_counts_stands_for_its_round(results):
    first = run("both", 1, replies_per_5s=(1, 1), faults=(STEAL,))
    again = tuple(replace(one, attempt=2) if one.arm == "both" else one for one in results.runs)
    text = page(replace(results, runs=(first, *again)))
    assert "| both | 2000, 2000 and 2000, 1600 | none |" in text


def test_what_is_missing_is_said(results):
    failed = run("both", 1, replies_per_5s=None, hung=None, failure="it did not start")
    text = page(replace(results, finished=None, runs=(failed,)))
    assert "**Interrupted**" in text
    assert "| both | failed | not measured |" in text
    assert "| as published | not measured | not measured |" in text
    assert "answers, with both mended, an unknown number of times as many" in text


def test_results_are_read_as_they_were_written(results, tmp_path):
    failed = run("both", 1, replies_per_5s=None, hung=None, failure="it did not start")
    written = replace(results, runs=(*results.runs, failed))
    proof_page.publish(written, tmp_path)
    assert proof_page.read(tmp_path) == written
    assert (tmp_path / "README.md").read_text() == page(written) + "\n"


def test_replies_are_counted_by_whole_5_s_and_a_silent_second_is_none():
    seconds = (0, 4, 5, 10, 11)  # the last two are no whole 5 s
    assert per_5s(load(seconds), 12) == (20, 10)
    assert per_5s(load((0,)), 15) == (10, 0, 0)


def test_run_counts_where_every_gate_lets_it():
    gates = (
        Gate("failures", False, 1, 0, "%", "9 requests failed", advisory=True),
        Gate("steal", False, 0.08, 0.02, "cores", STEAL),
    )
    sample = Sample("proof", "both", "x", "minute", 1, 1, "now", load((0,)), None, None, None)
    assert run_of(sample, 5) == Run("both", 1, 1, (10,), 9, (), None)
    assert run_of(replace(sample, gates=gates), 5).faults == (STEAL,)
    assert not run_of(replace(sample, gates=gates), 5).counts


def load(seconds: tuple[int, ...]) -> Load:
    buckets = tuple(Bucket(float(second), 10, 10, 0, 0, 0, 1.0, 1.0) for second in seconds)
    return Load(
        *("throughput", "closed", "http", "http://127.0.0.1:1/", "close", None, 10, 5.0, 5.0),
        *(19, 19, 10, 0, 9, 0, {}, "", "", "", 10.0, buckets),
    )


def test_arms_of_a_table_differ_in_what_is_changed_alone():
    for names in (tuple(MENDED), *SLEEPS.values()):
        found = [environment(ARM[name]) for name in names]
        for one in found:
            del one["DEPLOY_VARIANT"], one["DEPLOY_APPLICATION"]
            one["DJANGO_SETTINGS_MODULE"] = one["DJANGO_SETTINGS_MODULE"].removesuffix("_mended")
        assert found == found[:1] * len(names)
    switches = {name: dict(arm.switches) for name, arm in ARM.items() if arm.switches}
    assert switches == {
        "channels": {"CHANNELS1_MENDED": "channels"},
        "semaphore": {"CHANNELS1_MENDED": "semaphore"},
        "both": {"CHANNELS1_MENDED": "channels,semaphore"},
        "ipc-1ms": {"CHANNELS1_DAPHNE_SLEEP_S": "0.001"},
        "redis-1ms": {"CHANNELS1_DAPHNE_SLEEP_S": "0.001"},
    }


@pytest.mark.server
@pytest.mark.parametrize("name", ["both", "redis-1ms"])
def test_arm_is_served_with_its_switch_and_leaves_nothing(name, request):
    arm = ARM[name]
    request.getfixturevalue("python017" if arm.stack == "channels017" else "python")
    with proof.served(arm, None) as deployment:
        assert deployment.identity["mended"] == list(arm.mended)
        servers = psutil.Process(deployment.pid).children()
        daphne = next(one for one in servers if arm.entry_point in one.cmdline())
        assert dict(arm.switches).items() <= daphne.environ().items()
    assert not any(one.is_running() for one in servers)
