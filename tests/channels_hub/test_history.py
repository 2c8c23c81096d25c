import gc
import time

import pytest

from channels_hub import history as history_module
from channels_hub.history import History
from channels_hub.records import Record, enclose, pack

SIZE_BYTES = 50  # of an enclosed record


def told(topic, position, publisher=1, timestamp_ns=100):
    """Return what ``History.add`` takes."""
    record = Record(timestamp_ns, publisher, position, position, topic, b"")
    enclosed = enclose(pack(record))
    return topic, enclosed + b"x" * (SIZE_BYTES - len(enclosed))


@pytest.fixture
def history():
    history = History(limit_bytes=5 * SIZE_BYTES)
    history.start("a", now_ns=10)
    history.start("b", now_ns=10)
    return history


def test_after_gives_what_is_newer_in_the_order_it_came(history):
    for position, topic in enumerate("abab", 1):
        history.add(*told(topic, position))
    assert [record.position for record in history.after({"a", "b"}, {1: 2}, 0)] == [3, 4]
    assert [record.position for record in history.after({"a"}, {1: 1}, 0)] == [3]


def test_after_of_an_unknown_publisher_goes_by_time(history):
    history.add(*told("a", 1, publisher=9, timestamp_ns=50))
    history.add(*told("a", 2, publisher=9, timestamp_ns=60))
    assert [record.position for record in history.after({"a"}, {1: 5}, 60)] == [2]


def test_history_keeps_to_its_limit(history):
    for position in range(1, 20):
        history.add(*told("a", position))
    assert history.size_bytes == 5 * SIZE_BYTES
    assert [record.position for record in history.after({"a"}, {}, 0)] == [15, 16, 17, 18, 19]


def test_topic_is_covered_until_something_unseen_is_forgotten(history):
    for position in range(1, 7):
        history.add(*told("a", position))
    assert history.covers("a", {1: 1}, since_ns=10)
    assert not history.covers("a", {}, since_ns=10)
    history.add(*told("b", 7))
    assert not history.covers("a", {1: 1}, since_ns=10)
    assert history.covers("b", {}, since_ns=10)


def test_what_is_forgotten_of_before_the_client_came_is_no_gap_of_its_own(history):
    for position in range(1, 7):
        history.add(*told("a", position, timestamp_ns=100 + position))
    assert not history.covers("a", {}, since_ns=101)
    assert history.covers("a", {}, since_ns=102)
    assert history.covers("a", {9: 1}, since_ns=102)


def test_topic_joined_after_the_client_asked_is_not_covered(history):
    assert not history.covers("a", {}, since_ns=9)
    assert not history.covers("never joined", {}, since_ns=10)


def test_topic_that_was_left_is_not_covered_when_it_is_joined_again(history):
    history.stop("a")
    assert not history.covers("a", {}, since_ns=10)
    history.start("a", now_ns=20)
    assert not history.covers("a", {}, since_ns=10)
    assert history.covers("a", {}, since_ns=20)


def test_publisher_of_which_no_topic_is_left_is_forgotten(history):
    for position in range(1, 20):
        history.add(*told("ab"[position % 2], position, publisher=position % 3))
    history.stop("a")
    history.stop("b")
    assert not history._forgotten


@pytest.mark.parametrize("ahead_ns", [0, 1 << 62], ids=["behind", "ahead"])
def test_topic_of_very_many_publishers_keeps_a_bounded_memory_and_vouches_for_less(
    monkeypatch, ahead_ns
):
    """Whatever the last one's clock says."""
    monkeypatch.setattr(history_module, "MOST_HEADS", 3)
    history = History(limit_bytes=0)
    history.start("a", now_ns=10)
    seen = dict.fromkeys(range(1, 5), 1)
    for publisher in (1, 2, 3):
        history.add(*told("a", 1, publisher))
    assert history.covers("a", seen, 50)
    before_ns = time.time_ns()
    history.add(*told("a", 1, 4, timestamp_ns=ahead_ns + 100))
    assert not history.covers("a", seen, 50)
    assert not history.covers("a", seen, before_ns)
    assert history.covers("a", seen, max(time.time_ns(), ahead_ns + 101))


def test_remembering_and_forgetting_give_the_garbage_collector_nothing_to_count():
    history = History(1_000 * SIZE_BYTES)
    topics = [f"t{number}" for number in range(500)]
    for topic in topics:
        history.start(topic, now_ns=10)
    records = [told(topics[position % 500], position) for position in range(5_000)]
    for _ in range(2_000):  # once each topic has lost a record, nothing more is made for it
        history.add(*records.pop(0))
    gc.collect()
    gc.disable()
    try:
        before, *_ = gc.get_count()
        for topic, enclosed in records:
            history.add(topic, enclosed)
        after, *_ = gc.get_count()
    finally:
        gc.enable()
    assert history.size_bytes == history.limit_bytes
    assert after - before < 20
