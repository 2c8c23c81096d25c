import base64
import json

import pytest

from channels_hub.cursor import Cursor, CursorError, parse


def encode(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


def test_cursor_comes_back_as_it_was():
    cursor = Cursor("0123", 7, 1_700_000_000_000_000_000, {4_000_000_000: 12, 3: 4})
    assert parse(str(cursor)) == cursor


def test_cursor_needs_no_escaping_in_a_url():
    assert set("+/=&?") & set(str(Cursor("0123", 7, 10**18, {1: 2}))) == set()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "é",
        "a",
        encode([]),
        encode({}),
        encode({"session": "s", "batch": 1, "since_ns": 1, "positions": []}),
        encode({"session": "s", "batch": "1", "since_ns": 1, "positions": {}}),
        encode({"session": "s", "batch": 1, "since_ns": 1, "positions": {"x": 1}}),
        encode({"session": "s", "batch": 1, "since_ns": 1, "positions": {"1": None}}),
        encode({"session": 1, "batch": 1, "since_ns": 1, "positions": {}}),
        encode({"session": "s", "batch": 1, "since_ns": 1 << 64, "positions": {}}),
        encode({"session": "s", "batch": 1, "since_ns": -1, "positions": {}}),
        encode({"session": "s", "batch": 1, "since_ns": 1, "positions": {"1": 1 << 64}}),
        encode({"session": "s", "batch": 1, "since_ns": 1, "positions": {str(1 << 64): 1}}),
        base64.urlsafe_b64encode(b"[" * 40_000).decode(),
        "x" * 100_000,
        encode({"session": "s", "batch": True, "since_ns": 1, "positions": {}}),
    ],
)
def test_text_that_is_no_cursor_is_refused(text):
    with pytest.raises(CursorError, match="this"):
        parse(text)
