"""What cannot be done is refused in one line, with exit code 2 and without a traceback."""

import pytest


def refusal(ended) -> str:
    """Return the one line in which Locust was made to refuse."""
    assert ended.code == 2, ended.output
    assert "Traceback" not in ended.output
    assert ended.load is None
    (line,) = [line for line in ended.output.splitlines() if "error:" in line]
    return line


@pytest.mark.parametrize(("option", "value"), [("--rps", "0"), ("--connection", "maybe")])
def test_option_that_cannot_be_is_named_with_its_value(drive, option, value):
    line = refusal(drive("http.py", "Latency", f"{option}={value}", "--host", "http://127.0.0.1"))
    assert option in line
    assert value in line


@pytest.mark.parametrize(
    ("host", "path", "said"),
    [
        ("http://127.0.0.1:1", "/", "start the server first"),
        ("http://127.0.0.1", "no-slash", "starts with /"),
    ],
)
def test_target_that_cannot_be_is_named(drive, host, path, said):
    line = refusal(drive("http.py", "Latency", "--host", host, "--path", path))
    assert said in line


def test_host_left_out_is_asked_for(drive):
    assert "--host" in refusal(drive("http.py", "Latency"))


def test_path_that_does_not_exist_is_refused_before_the_test(serve, drive):
    server = serve(fault="not_found", first=1)
    line = refusal(
        drive("http.py", "Latency", "--host", f"http://127.0.0.1:{server.port}", "--path", "/x")
    )
    assert "404" in line
    assert server.stop()["requests"] == 1


def test_warm_up_as_long_as_the_run_is_refused(serve, drive):
    host = f"http://127.0.0.1:{serve().port}"
    assert "--warm-up" in refusal(drive("http.py", "Latency", "--host", host, "--warm-up", "1"))


def test_two_tests_at_once_are_refused(drive):
    line = refusal(drive("http.py", "Latency", "Throughput", "--host", "http://127.0.0.1:1"))
    assert "Latency or Throughput" in line


def test_test_that_there_is_not_is_refused_with_the_nearest(drive):
    line = refusal(drive("http.py", "Latncy", "--host", "http://127.0.0.1:1"))
    assert "no test 'Latncy': did you mean Latency" in line


def test_search_for_the_capacity_cannot_be_divided(drive):
    arguments = ("--master", "--expect-workers", 2, "--host", "http://127.0.0.1:1")
    assert "one process" in refusal(drive("http.py", "Capacity", *arguments))


def test_handshake_that_is_denied_is_refused_before_the_test(serve_echo, drive):
    host = f"ws://127.0.0.1:{serve_echo('deny').port}"
    assert "handshake 403" in refusal(drive("websocket.py", "Echo", "--host", host))
