import gc

import pytest

from channels_hub.history import History, Remembered


def remembered(topic, position, publisher=1, timestamp_ns=100, size=10):
    return Remembered(timestamp_ns, publisher, position, topic, b"x" * size)


@pytest.fixture
def history():
    history = History(limit_bytes=50)
    history.start("a", now_ns=10)
    history.start("b", now_ns=10)
    return history


def test_after_gives_what_is_newer_in_the_order_it_came(history):
    for position, topic in enumerate("abab", 1):
        history.add(*remembered(topic, position))
    assert [record.position for record in history.after({"a", "b"}, {1: 2}, 0)] == [3, 4]
    assert [record.position for record in history.after({"a"}, {1: 1}, 0)] == [3]


def test_after_of_an_unknown_publisher_goes_by_time(history):
    history.add(*remembered("a", 1, publisher=9, timestamp_ns=50))
    history.add(*remembered("a", 2, publisher=9, timestamp_ns=60))
    assert [record.position for record in history.after({"a"}, {1: 5}, 60)] == [2]


def test_history_keeps_to_its_limit(history):
    for position in range(1, 20):
        history.add(*remembered("a", position))
    assert history.size_bytes == 50
    assert [record.position for record in history.after({"a"}, {}, 0)] == [15, 16, 17, 18, 19]


def test_topic_is_covered_until_something_unseen_is_forgotten(history):
    for position in range(1, 7):
        history.add(*remembered("a", position))
    assert history.covers("a", {1: 1}, since_ns=10)
    assert not history.covers("a", {}, since_ns=10)
    history.add(*remembered("b", 7))
    assert not history.covers("a", {1: 1}, since_ns=10)
    assert history.covers("b", {}, since_ns=10)


def test_what_is_forgotten_of_before_the_client_came_is_no_gap_of_its_own(history):
    for position in range(1, 7):
        history.add(*remembered("a", position, timestamp_ns=100 + position))
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


def test_collector_of_garbage_does_not_look_at_what_is_remembered():
    history = History(10_000)
    for position in range(1, 100):
        history.add(*remembered("a", position))
    gc.collect()
    assert not any(gc.is_tracked(record) for record in history._records)
