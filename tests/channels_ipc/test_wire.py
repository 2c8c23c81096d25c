import random

import pytest

from channels_ipc import wire


def frame(payload=b"payload", name=b"specific.0!1", kind=wire.MESSAGE, extra=b""):
    return wire.encode(kind, 7, 12.5, name, payload, extra)


def names(frames):
    return [one.name for one in frames]


def test_frame_comes_back_as_it_was_encoded():
    data = wire.encode(wire.MEMBER, 7, 12.5, "chännel".encode(), b"x" * 100, b"group", wire.SPOOLED)
    found, end = wire.decode(data)
    assert found == (wire.MEMBER, wire.SPOOLED, 7, 12.5, "chännel", "group", b"x" * 100)
    assert end == len(data)


def test_frames_in_one_buffer_come_out_in_order():
    data = b"".join(frame(name=str(number).encode()) for number in range(50))
    frames, rest, skipped = wire.split(data, drained=True)
    assert names(frames) == [str(number) for number in range(50)]
    assert (rest, skipped) == (b"", 0)


@pytest.mark.parametrize("size", [1, 3, 4, 10, 27, 37])
def test_frame_cut_by_the_end_of_a_read_is_kept_for_the_next(size):
    first, second = frame(name=b"1"), frame(name=b"2")
    frames, rest, skipped = wire.split(first + second[:size], drained=False)
    assert names(frames) == ["1"]
    assert (rest, skipped) == (second[:size], 0)
    assert names(wire.split(rest + second[size:], drained=True)[0]) == ["2"]


@pytest.mark.parametrize("size", [1, 4, 10, 27, 37])
def test_truncated_frame_is_skipped_and_costs_no_other(size):
    frames, rest, skipped = wire.split(frame(name=b"1")[:size] + frame(name=b"2"), drained=True)
    assert names(frames) == ["2"]
    assert (rest, skipped) == (b"", 1)


def test_frame_cut_short_at_the_end_of_the_mailbox_is_skipped():
    assert wire.split(frame()[:-1], drained=True) == ([], b"", 1)


def test_random_bytes_between_frames_cost_none_of_them():
    rng = random.Random(1)
    data, expected = b"", []
    for number in range(10_000):
        data += rng.randbytes(rng.randrange(40))
        if number % 10 == 0:
            data += frame(name=str(number).encode())
            expected.append(str(number))
    frames, rest, skipped = wire.split(data, drained=True)
    assert names(frames) == expected
    assert rest == b""
    assert skipped >= len(expected) * 0.9


def test_ten_thousand_damaged_frames_do_not_raise():
    rng = random.Random(2)
    for _ in range(10_000):
        data = bytearray(frame(rng.randbytes(rng.randrange(60))))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        frames, _, _ = wire.split(bytes(data), drained=rng.random() < 0.5)
        assert all(encoded(one) == bytes(data) for one in frames)


def encoded(one):
    name, extra = one.name.encode(), one.extra.encode()
    return wire.encode(one.kind, one.generation, one.deadline, name, one.payload, extra, one.flags)


def test_half_a_magic_after_rubbish_is_kept_for_the_next_read():
    data = b"rubbish" + frame(name=b"1")
    frames, rest, _ = wire.split(data[:9], drained=False)
    assert frames == []
    assert names(wire.split(rest + data[9:], drained=True)[0]) == ["1"]


@pytest.mark.parametrize(
    "data",
    [
        wire.encode(99, 1, 1.0, b"name", b""),
        wire.encode(wire.MESSAGE, 1, 1.0, b"\xff\xfe", b""),
        wire.encode(wire.MESSAGE, 1, 1.0, b"name", b"", b"\xff"),
    ],
    ids=["unknown kind", "name", "extra"],
)
def test_sound_marks_do_not_excuse_nonsense(data):
    assert wire.decode(data) is None
