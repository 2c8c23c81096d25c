"""The fault table: from what the clients saw to a row."""

import json
import os
import signal
from contextlib import nullcontext
from importlib import import_module
from itertools import product

import pytest
from click.testing import CliRunner

from bench import ports
from bench.cli import main
from bench.cli.faults import DEFAULT, shuffled
from bench.faults.cases import Fault, Unharmed, outcome, summed
from bench.faults.page import Results, page, read, write
from bench.faults.traffic import Request, Seen, Socket
from bench.proxies import PROXIES
from bench.supervise import Deployment
from bench.variants import resolve

NAME = "uvicorn-ipc-nginx-x4-ports"
faults = import_module("bench.cli.faults")  # the package has the command under this name
PROVENANCE = {
    "machine": {"cpu": "a processor", "usable_processors": 2, "kernel": "Linux 6"},
    "versions": {"python": "3.11", "nginx": None},
    "commit": "abc",
}


def seen(**changed):
    requests = [
        Request(10.0, 0.002, "ok"),
        Request(10.5, 0.300, "status 502"),
        Request(12.0, 0.004, "ok", repeated=True),
    ]
    sockets = [
        Socket(7, sent=9, returned=8, ended="cut off"),
        Socket(8, sent=20, returned=20, wrong=1),
        Socket(9, sent=3, returned=3, ended="closed 1012"),
    ]
    handshakes = [Request(10.0, 0.002, "ok"), Request(10.5, 0.001, "status 503")]
    parts = {"requests": requests, "sockets": sockets, "handshakes": handshakes}
    return Seen(**parts | changed)


def test_outcome_counts_what_was_lost_and_how_long_it_went_on():
    found = summed(NAME, "kill", seen(), began_s=10.4, ended={7})
    assert (found.requests, found.requests_lost) == (3, 1)
    assert found.results == {"ok": 2, "status 502": 1}
    assert found.repeated == 1
    assert (found.slowest_ms, found.slowest_failure_ms) == (300.0, 300.0)
    waited = seen(handshakes=[Request(10.0, 0.4, "ok")])
    assert summed(NAME, "kill", waited, began_s=10.4, ended={7}).slowest_ms == 400.0
    assert found.failing_s == pytest.approx(0.4)
    assert (found.messages_sent, found.messages, found.messages_lost) == (32, 31, 1)
    assert found.messages_wrong == 1
    assert (found.handshakes, found.handshakes_failed) == (2, {"status 503": 1})


def test_outcome_has_the_median_of_the_failures_beside_the_slowest():
    failures = [Request(1.0, took_s, "status 502") for took_s in (0.01, 0.02, 1.0)]
    found = summed(NAME, "down", seen(requests=failures), 1.0, set())
    assert (found.median_failure_ms, found.slowest_failure_ms) == (20.0, 1000.0)


def test_outcome_tells_sockets_that_died_with_their_process_from_those_the_front_lost():
    found = summed(NAME, "kill", seen(), began_s=10.4, ended={7})
    assert found.sockets_ended == {"closed 1012": 1, "cut off": 1}
    assert (found.sockets_inevitable, found.sockets_lost) == (1, 1)


def test_outcome_without_names_of_processes_cannot_tell_them_apart():
    unnamed = [Socket(None, ended="cut off")]
    found = summed(NAME, "kill", seen(sockets=unnamed), began_s=10.4, ended={7})
    assert (found.sockets_inevitable, found.sockets_lost) == (None, None)


def test_outcome_without_a_failure_has_no_duration_of_one():
    found = summed(NAME, "reload", seen(requests=[Request(1.0, 0.1, "ok")]), 1.0, set())
    assert found.slowest_failure_ms is None
    assert found.median_failure_ms is None
    assert found.failing_s is None


def results():
    rounds = [summed(NAME, "kill", seen(), 10.4, {7}) for _ in range(2)]
    without = seen(sockets=[], handshakes=[])
    quiet = summed("gunicorn-nginx-x4-ports", "kill", without, 10.4, {7})
    failures = {"daphne-ipc-nginx-x4": "it did not start"}
    outcomes = (*rounds, quiet)
    return Results("2026-01-02T03:04:05+00:00", None, 2, outcomes, failures, PROVENANCE, {})


def test_page_adds_the_rounds_up_and_leaves_blank_what_there_was_not():
    text = "\n".join(page(results()))
    row = f"| `{NAME}` | 6 | 2 | 2 | 2 status 502 | 0.4 | 300 | 300 | 300 |"
    assert f"{row} 6 | 2 | 2 | 4 | 2 status 503 | 64 | 2 | 2 |" in text
    row = "3 | 1 | 1 | 1 status 502 | 0.4 | 300 | 300 | 300 |" + " |" * 8
    assert f"| `gunicorn-nginx-x4-ports` | {row}" in text.replace("|  ", "| ")
    assert "**Interrupted**" in text
    assert "- daphne-ipc-nginx-x4: **missing**: it did not start" in text


def test_report_is_written_again_from_the_file(tmp_path, reported):
    write(results(), tmp_path)
    before = (tmp_path / "README.md").read_text()
    assert reported(tmp_path) == before


def test_results_come_back_from_their_folder(tmp_path):
    write(results(), tmp_path)
    assert read(tmp_path) == results()
    assert json.loads((tmp_path / "faults.json").read_text())["outcomes"][0]["fault"] == "kill"


def test_every_round_has_every_variant_once_and_the_seed_repeats_it():
    variants = [resolve(name) for name in DEFAULT]
    orders = shuffled(variants, 3, seed=1)
    assert orders == shuffled(variants, 3, seed=1)
    assert [sorted(order, key=variants.index) for order in orders] == [variants] * 3


def test_default_has_each_proxy_in_front_of_each_server():
    found = {(resolve(name).proxy, resolve(name).server) for name in DEFAULT}
    assert found == set(product(PROXIES, ("gunicorn", "uvicorn", "daphne")))
    assert len(found) == len(DEFAULT)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("gunicorn",), "gunicorn has none of nginx, haproxy, apache in front: see `bench list`"),
        (("gunicorn-swarm-x4",), "gunicorn-swarm-x4 has none of nginx, haproxy, apache in front"),
        (("gunicorn-nginks-x4",), "did you mean gunicorn-nginx-x4"),
    ],
)
def test_variant_without_a_front_is_one_line(arguments, reason, tmp_path):
    result = CliRunner().invoke(main, ("faults", "--into", str(tmp_path / "new"), *arguments))
    assert result.exit_code == 2
    assert reason in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_interrupted_run_says_so_and_keeps_what_was_found(monkeypatch, tmp_path):
    def one_and_then_ctrl_c(*_):
        yield summed(NAME, "kill", seen(), 10.4, {7})
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(faults.supervise, "deployed", nullcontext)
    monkeypatch.setattr(faults, "outcomes", one_and_then_ctrl_c)
    result = CliRunner().invoke(main, ("faults", "--into", str(tmp_path / "new"), NAME))
    assert result.exit_code == 130, result.output
    kept = read(tmp_path / "new")
    assert (kept.finished, [one.fault for one in kept.outcomes]) == (None, ["kill"])


def test_fault_that_cannot_be_caused_is_said_so_and_no_bug_is_hidden(monkeypatch, free_port):
    monkeypatch.setattr(ports, "NGINX", free_port)  # nobody is there: every request is refused
    deployment = Deployment(resolve("gunicorn-nginx-x4-ports"), {}, 1)

    def unharmed(_):
        raise Unharmed("supervisord knows of no gunicorn")

    with pytest.raises(Unharmed, match=r"^kill: supervisord knows of no gunicorn$"):
        outcome(deployment, Fault("kill", "", unharmed))
    with pytest.raises(ExceptionGroup) as group:
        outcome(deployment, Fault("kill", "", lambda _: 1 / 0))
    assert group.group_contains(ZeroDivisionError)
