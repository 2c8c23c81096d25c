"""What the clients make of a reply, without a socket."""

import pytest

from locustfiles.driver.http_client import Request
from locustfiles.driver.target import Target
from locustfiles.driver.websocket_client import Verdict, place, tally

TARGET = Target("http", "127.0.0.1:8000", "/relay/", 2, ("127.0.0.1", 8000))


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (200, b"OK", None),
        (204, b"OK", None),
        (200, b"OK\n", "wrong body"),
        (301, b"OK", "status 301"),
        (503, b"OK", "status 503"),
    ],
)
def test_verdict_wants_success_and_the_expected_body(status, body, failure):
    assert Request(TARGET, True, 1.0, b"OK").verdict(status, body) == failure


def test_verdict_takes_any_body_where_none_is_expected():
    assert Request(TARGET, True, 1.0).verdict(200, b"anything") is None


@pytest.mark.parametrize(("keepalive", "header"), [(True, b"keep-alive"), (False, b"close")])
def test_request_says_what_becomes_of_the_connection(keepalive, header):
    encoded = Request(TARGET, keepalive, 1.0).encoded()
    assert encoded.startswith(b"GET /relay/ HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n")
    assert b"Connection: " + header + b"\r\n\r\n" in encoded


def test_place_finds_the_reply_among_the_expected():
    assert [place(text, [b"a", b"b"]) for text in (b"a", b"b", b"x")] == [0, 1, None]


@pytest.mark.parametrize(
    ("verdict", "name"),
    [
        (Verdict(), "failed"),
        (Verdict(opened=True), "good"),
        (Verdict(opened=True, lost=1, corrupt=1, out_of_order=1), "incomplete"),
        (Verdict(opened=True, corrupt=1, out_of_order=1), "corrupt"),
        (Verdict(opened=True, out_of_order=1), "out_of_order"),
    ],
)
def test_socket_counts_once_as_the_worst_that_happened(verdict, name):
    counters = tally([verdict])
    assert counters.pop(name) == 1
    assert set(counters.values()) == {0}
