import msgpack
import pytest

from channels_ipc.messages import Shared, pack, unpack

EVERY_TYPE = {
    "type": "test.message",
    "bytes": b"\x00\xff",
    "str": "é\U0001f600",
    "int64": [-(2**63), 2**63 - 1, 0],
    "float": 0.1,
    "dict": {"nested": {"deep": [1, [2, {"three": None}]]}},
    "bools": [True, False],
    "none": None,
}


def test_message_of_every_type_comes_back_the_same():
    assert unpack(pack(EVERY_TYPE)) == EVERY_TYPE


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", pack([1]), pack({"a": 1})[:-1], pack({}) + b"x", b"\x81\x90\x01"]
)
def test_bytes_that_are_no_message_are_a_value_error(data):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever msgpack says
        unpack(data)


@pytest.mark.parametrize("message", [EVERY_TYPE, {"type": "flat", "text": "x", "n": 1}])
def test_receivers_of_a_shared_message_cannot_change_each_others(message):
    shared = Shared(pack(message))
    first, second = shared.copy(), shared.copy()
    assert first == second == message
    first["type"] = "changed"
    if "dict" in first:
        first["dict"]["nested"]["deep"].append("changed")
    assert second == shared.copy() == message


def test_extension_type_is_not_shared_as_if_immutable():
    shared = Shared(pack({"type": "x", "ext": msgpack.ExtType(5, b"1")}))
    assert shared.copy() == shared.copy()
