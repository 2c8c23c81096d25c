import pytest

from channels_hub.records import (
    FrameError,
    Record,
    TopicError,
    check_topic,
    decode,
    enclose,
    join,
    pack,
    split,
    unpack,
)

RECORD = Record(1_700_000_000_000_000_000, 0xFFFFFFFF, 2**40, 7, "room.1", b"\x00body\xff")


def test_record_comes_back_as_it_was():
    assert unpack(pack(RECORD)) == RECORD


def test_record_starts_with_the_timestamp():
    assert int.from_bytes(pack(RECORD)[:8], "big") == RECORD.timestamp_ns


def test_frame_keeps_records_and_their_order():
    other = Record(1, 2, 3, 4, "b", b"")
    assert decode(join([RECORD, other, RECORD])) == [RECORD, other, RECORD]


@pytest.mark.parametrize("cut", [1, 3, 5, 20, -1])
def test_frame_that_is_cut_short_is_an_error(cut):
    frame = enclose(pack(RECORD))
    with pytest.raises(FrameError, match="the frame ends inside"):
        list(split(frame[:cut]))


@pytest.mark.parametrize("size", [0, 29, 31])
def test_record_that_is_cut_short_is_an_error(size):
    with pytest.raises(FrameError, match="a record of"):
        unpack(pack(RECORD)[:size])


@pytest.mark.parametrize("topic", ["", "a" * 81, "a b", "é", "a/b", "a\n", None, 7, ["a"]])
def test_topic_that_no_group_could_carry_is_refused(topic):
    with pytest.raises(TopicError, match="is not a topic"):
        check_topic(topic)


def test_topic_in_an_error_is_kept_short():
    with pytest.raises(TopicError) as error:
        check_topic("x" * 10_000)
    assert len(str(error.value)) < 150


@pytest.mark.parametrize("topic", ["a", "a" * 80, "..", "A-b_c.9"])
def test_topic_that_a_group_can_carry_is_accepted(topic):
    assert check_topic(topic) == topic
