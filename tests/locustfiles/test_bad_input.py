"""What cannot be done is refused in one line, with exit code 2 and without a traceback."""

import pytest


def refusal(ended) -> str:
    """Return the one line in which Locust was made to refuse."""
    assert ended.code == 2, ended.output
    assert "Traceback" not in ended.output
    assert ended.load is None
    (line,) = [line for line in ended.output.splitlines() if "error:" in line]
    return line


HTTP, NOBODY = "http.py", ("--host", "http://127.0.0.1:1")
# what is wrong -> the server, Locust's arguments, and what its one line says
REFUSED = {
    "a rate of 0": (None, (HTTP, "Latency", "--rps=0", *NOBODY), ("--rps", "0")),
    "a connection that is none": (
        None,
        (HTTP, "Latency", "--connection=maybe", *NOBODY),
        ("--connection", "maybe"),
    ),
    "a host where nobody answers": (None, (HTTP, "Latency", *NOBODY), ("start the server first",)),
    "a path without a slash": (
        None,
        (HTTP, "Latency", *NOBODY, "--path", "no-slash"),
        ("starts with /",),
    ),
    "no host": (None, (HTTP, "Latency"), ("--host",)),
    "two tests": (
        None,
        (HTTP, "Latency", "Throughput", *NOBODY),
        ("Latency or Throughput",),
    ),
    "a test that there is not": (
        None,
        (HTTP, "Latncy", *NOBODY),
        ("no test 'Latncy': did you mean Latency",),
    ),
    "a search that is divided": (
        None,
        (HTTP, "Capacity", "--master", "--expect-workers", 2, *NOBODY),
        ("one process",),
    ),
    "a warm-up as long as the run": (
        ("server.py", "{}"),
        (HTTP, "Latency", "--host", "http://127.0.0.1:{}", "--warm-up", 1),
        ("--warm-up",),
    ),
    "a handshake that is denied": (
        ("echo_server.py", "deny", "1"),
        ("websocket.py", "Echo", "--host", "ws://127.0.0.1:{}"),
        ("handshake 403",),
    ),
}


@pytest.fixture(scope="module")
def ended(at_once):
    return at_once([(what, server, told) for what, (server, told, _) in REFUSED.items()])


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_named(ended, what):
    line = refusal(ended[what])
    assert all(said in line for said in REFUSED[what][2])


def test_path_that_does_not_exist_is_refused_before_the_test(serve, drive):
    server = serve(fault="not_found", first=1)
    line = refusal(
        drive("http.py", "Latency", "--host", f"http://127.0.0.1:{server.port}", "--path", "/x")
    )
    assert "404" in line
    assert server.stop()["requests"] == 1
