"""``bench http`` and ``bench echo`` against small servers, with real generators."""

import json
import shutil

import pytest
from click.testing import CliRunner

from bench.balancing.reading import read, read_study
from bench.cli import main


def bench(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


@pytest.mark.skipif(not shutil.which("ab"), reason="apt-get install apache2-utils")
def test_http_puts_the_same_cell_on_a_server_with_each_tool(serve, tmp_path):
    port = serve("server.py", json.dumps({"service_s": 0.0005}))
    tools = [part for tool in ("ab", "wrk") for part in ("--tool", tool)]
    arguments = ("-p", port, "-c", 8, "-n", 300, "--path", "/", "--seconds", 1, "--rounds", 1)
    ended = bench("http", *tools, *arguments, "--into", tmp_path / "out")
    assert ended.exit_code == 0, ended.output
    found = {one.tool: one for one in read(tmp_path / "out" / "raw")}
    assert found.keys() == {"ab", "wrk"}
    assert found["ab"].outcome.ok == 300
    assert found["wrk"].outcome.ok > 300
    counted = {tool for tool, one in found.items() for gate in one.gates if gate.unit == "requests"}
    assert counted == {"ab"}
    assert all(one.server is None for one in found.values()), "of one's own server nothing is known"
    assert read_study(tmp_path / "out").finished is not None
    page = (tmp_path / "out" / "README.md").read_text()
    assert "300 requests, a connection for each request" in page
    # Where others had the processors, nothing counts and there is nothing to draw.
    drawn = (tmp_path / "out" / "rate.svg").exists()
    assert drawn == any(one.valid for one in read(tmp_path / "out" / "raw"))


def test_echo_counts_every_message_and_times_the_phases(serve, tmp_path):
    arguments = ("-n", 3, "-c", 50, "--seconds", 1, "--rounds", 1, "--detail")
    ended = bench(
        "echo", "-p", serve("echo_server.py", "none", 1), *arguments, "--into", tmp_path / "out"
    )
    assert ended.exit_code == 0, ended.output
    *_, one = read(tmp_path / "out" / "raw")  # a busy machine has it measured again
    assert one.outcome.ok == one.outcome.batches * 150
    assert one.outcome.phases_s.keys() == {"opening", "sending", "closing", "whole"}
    assert (one.outcome.failed, one.outcome.socket_errors) == (0, {})


def test_echo_explains_what_was_corrupt(serve, tmp_path):
    port = serve("echo_server.py", "corrupt", 3)
    ended = bench(
        *("echo", "-p", port, "-n", 3, "-c", 5, "--seconds", 1, "--rounds", 1),
        *("--into", tmp_path / "out"),
    )
    *_, one = read(tmp_path / "out" / "raw")  # a busy machine has it measured again
    assert one.outcome.errors == {"corrupt": one.outcome.batches * 5}
    assert "a message came back changed" in (tmp_path / "out" / "README.md").read_text()
    assert ended.exit_code == 0, "an error is a result"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("http", "-p", "1"), "nobody answers"),
        (("echo", "-p", "ftp://x"), "give a port"),
        (("http", "gunicor"), "gunicorn"),
        (("http", "--study", "nginxx"), "no column"),
        (("http", "--share", "0.1"), "add --study"),
        (("http", "--study", "--share", "0"), "--share"),
        (("echo", "-n", "0", "-p", "1"), "give 1 or more"),
        (("http", "--tool", "abb"), "did you mean ab"),
        (("http", "-p", "1", "gunicorn"), "leave out gunicorn"),
        (("echo", "-p", "1", "--study"), "leave out --study"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, said):
    ended = bench(*arguments)
    assert ended.exit_code == 2
    assert said in ended.output
    assert "Traceback" not in ended.output


def test_page_that_does_not_exist_is_a_failure_with_its_reason(serve, tmp_path):
    port = serve("server.py", json.dumps({"fault": "not_found", "first": 0}))
    arguments = ("--tool", "locust", "-p", port, "-n", 10, "-c", 1, "--rounds", 1)
    ended = bench("http", *arguments, "--into", tmp_path / "out")
    assert ended.exit_code == 1
    *_, one = read(tmp_path / "out" / "raw")  # a busy machine has it measured again
    assert "answers 404" in one.failure
