"""The WebSocket tests of the load driver, each against a real server that misbehaves in one way."""

import pytest


def on(server, *arguments):
    return ("--host", f"ws://127.0.0.1:{server.port}", "--connections", 10, *arguments)


def test_echo_counts_every_socket_as_good(serve_echo, drive):
    ended = drive("websocket.py", "EchoAtRate", *on(serve_echo("origin"), "--rps", 200))
    load = ended.load
    assert (ended.code, load.transport, load.connection) == (0, "websocket", "keepalive")
    assert load.ok == load.scheduled == 200
    assert load.counters == {
        "good": 10,
        "incomplete": 0,
        "corrupt": 0,
        "out_of_order": 0,
        "failed": 0,
    }


def test_echo_times_the_opening_of_each_socket(serve_echo, drive, percentile_ms):
    ended = drive("websocket.py", "EchoAtRate", *on(serve_echo(), "--rps", 50))
    assert 0 < percentile_ms(ended.load.connect_us, 50) < 5000


FAULTS = {"corrupt": ("corrupt", "corrupt"), "close": ("closed 1011", "incomplete")}


@pytest.fixture(scope="module")
def faulty(at_once):
    """Each fault in every tenth message of 400, over 10 sockets."""
    told = ("--host", "ws://127.0.0.1:{}", "--connections", 10, "--rps", 400)
    return at_once(
        [
            (fault, ("echo_server.py", fault, "10"), ("websocket.py", "EchoAtRate", *told))
            for fault in FAULTS
        ]
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_of_a_reply_is_an_error_of_its_kind(faulty, fault):
    load = faulty[fault].load
    kind, counter = FAULTS[fault]
    assert load.error_kinds[kind] >= 10
    assert load.counters[counter] >= 10
    assert load.sent == load.ok + load.error + load.timeout == 400


def test_replies_in_the_wrong_order_are_told_from_corrupt_ones(serve_echo, drive):
    # A message that is held back when the test ends has nobody left to be swapped with.
    arguments = ("--per-connection", 4, "--timeout", 0.5)
    ended = drive("websocket.py", "Echo", *on(serve_echo("swap", 10), *arguments))
    load = ended.load
    assert load.error_kinds.keys() == {"out of order"}
    assert load.counters["out_of_order"] >= 1
    assert load.counters["out_of_order"] + load.counters["incomplete"] == 10
    assert load.concurrency == 40


def test_reply_that_never_comes_is_a_timeout(serve_echo, drive):
    arguments = ("--rps", 100, "--timeout", 0.5)
    ended = drive("websocket.py", "EchoAtRate", *on(serve_echo("silent", 5), *arguments))
    load = ended.load
    assert 10 <= load.timeout <= 20
    assert load.error == 0
    assert load.counters["incomplete"] == 10
    assert load.sent == load.ok + load.timeout == 100


def test_socket_is_replaced_after_its_messages(serve_echo, drive):
    ended = drive("websocket.py", "Echo", *on(serve_echo(), "--messages", 20))
    load = ended.load
    assert load.connection == "close"
    assert load.error == load.timeout == 0
    assert load.counters["good"] == sum(load.counters.values()) >= load.ok / 20
