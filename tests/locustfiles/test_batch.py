"""Batches of sockets: all open, send and close, and what did not is counted where it belongs."""

import pytest

BATCH = ("websocket.py", "EchoBatch", "--host", "ws://127.0.0.1:{}", "--messages", 5)
# case -> the fault, in every so many messages, and the options
CASES = {
    "no": ("none", 1, ("--connections", 100, "--opening", 0, "--detail", "no")),
    "yes": ("none", 1, ("--connections", 100, "--opening", 0, "--detail", "yes")),
    "close": ("close", 3, ("--connections", 10)),
    "silent": ("silent", 5, ("--connections", 4, "--timeout", 0.3, "--detail", "yes")),
    "corrupt": ("corrupt", 5, ("--connections", 4)),
    "twice": ("twice", 5, ("--connections", 4)),
}


@pytest.fixture(scope="module")
def batches(at_once):
    return at_once(
        [
            (name, ("echo_server.py", fault, str(every)), (*BATCH, *options))
            for name, (fault, every, options) in CASES.items()
        ]
    )


def assert_accounted(load) -> None:
    assert load.scheduled == load.batches * load.concurrency * 5
    assert load.scheduled == load.sent + load.dropped
    assert load.sent == load.ok + load.error + load.timeout


@pytest.mark.parametrize("detail", ["no", "yes"])
def test_batch_sends_every_message_of_every_socket(batches, detail):
    load = batches[detail].load
    assert load.ok == load.scheduled
    assert load.counters["good"] == sum(load.counters.values()) == 100 * load.batches
    assert load.socket_errors == {}
    phases = {"whole"} | ({"opening", "sending", "closing"} if detail == "yes" else set())
    assert load.phases_s.keys() == phases
    if detail == "yes":
        parts = [load.phases_s[name] for name in ("opening", "sending", "closing")]
        assert sum(parts) == pytest.approx(load.phases_s["whole"], rel=0.01)
    assert_accounted(load)


def test_socket_that_goes_down_drops_what_it_had_not_sent(batches):
    load = batches["close"].load
    each = 10 * load.batches
    assert (load.ok, load.error, load.dropped) == (2 * each, each, 2 * each)
    assert load.error_kinds == {"closed 1011": each}
    assert load.socket_errors == {"sending: closed 1011": each}
    assert_accounted(load)


def test_reply_that_never_comes_is_a_timeout_and_the_socket_goes_on(batches):
    load = batches["silent"].load
    assert load.timeout == 4 * load.batches
    assert load.counters["incomplete"] == 4 * load.batches
    assert load.socket_errors == {}
    assert_accounted(load)


def test_corrupt_message_is_one(batches):
    load = batches["corrupt"].load
    assert load.error_kinds == {"corrupt": 4 * load.batches}
    assert load.unasked == 0
    assert_accounted(load)


def test_reply_that_nobody_asked_for_is_counted(batches):
    load = batches["twice"].load
    assert (load.ok, load.unasked) == (load.scheduled, 4 * load.batches)
    assert_accounted(load)
