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
        Request(12.0, 0.004, "ok"),
    ]
    sockets = [
        Socket(7, sent=9, returned=8, ended="cut off"),
        Socket(8, sent=20, returned=20, wrong=1),
        Socket(9, sent=3, returned=3, ended="closed 1012"),
    ]
    return Seen(**{"requests": requests, "sockets": sockets} | changed)


def test_outcome_counts_what_was_lost_and_how_long_it_went_on():
    found = summed(NAME, "kill", seen(), began_s=10.4, ended={7})
    assert (found.requests, found.requests_lost) == (3, 1)
    assert found.results == {"ok": 2, "status 502": 1}
    assert (found.slowest_ms, found.slowest_failure_ms) == (300.0, 300.0)
    assert found.failing_s == pytest.approx(0.4)
    assert (found.messages, found.messages_wrong) == (31, 1)


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
    assert (found.slowest_failure_ms, found.failing_s) == (None, None)


def results():
    rounds = [summed(NAME, "kill", seen(), 10.4, {7}) for _ in range(2)]
    quiet = summed("gunicorn-nginx-x4-ports", "kill", seen(sockets=[]), 10.4, {7})
    failures = {"daphne-ipc-nginx-x4": "it did not start"}
    outcomes = (*rounds, quiet)
    return Results("2026-01-02T03:04:05+00:00", None, 2, outcomes, failures, PROVENANCE, {})


def test_page_adds_the_rounds_up_and_leaves_blank_what_there_was_not():
    text = "\n".join(page(results()))
    assert f"| `{NAME}` | 6 | 2 | 2 status 502 | 0.4 | 300 | 300 | 6 | 2 | 2 | 62 | 2 |" in text
    assert "| `gunicorn-nginx-x4-ports` | 3 | 1 | 1 status 502 | 0.4 | 300 | 300 | | | | | |" in (
        text.replace("|  ", "| ")
    )
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


def test_default_has_each_proxy_with_and_without_sockets():
    found = {(resolve(name).proxy, resolve(name).interface) for name in DEFAULT}
    assert found == set(product(("nginx", "haproxy", "apache"), ("wsgi", "asgi")))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("gunicorn",), "gunicorn has no proxy in front: `bench list` has those that do"),
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
