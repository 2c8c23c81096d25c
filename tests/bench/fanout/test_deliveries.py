"""The subscriber's check counts each thing that can be wrong with a record, and nothing else."""

from random import Random

import pytest

from channels_hub.records import Record, join
from locustfiles.driver.deliveries import Layout, Subscriber, Tally

SIZE = 100


def record(sequence, topic="t000001", publisher=1, size=SIZE):
    body = b"x" * (size - 30 - len(topic))
    return Record(1_000_000_000, publisher, sequence, sequence, topic, body)


@pytest.fixture
def tally():
    return Tally()


@pytest.fixture
def subscriber(tally):
    return Subscriber([b"t000001", b"t000002"], Layout(SIZE, 7), tally, since_start=True)


def wrong(tally):
    counts = tally.counts()
    names = ("lost", "duplicated", "reordered", "corrupt", "foreign")
    return {name: counts[name] for name in names if counts[name]}


@pytest.mark.parametrize(
    ("sequences", "found"),
    [
        ([1, 2, 3], {}),
        ([2, 3], {"lost": 1}),
        ([1, 4], {"lost": 2}),
        ([1, 2, 2], {"duplicated": 1}),
        ([1, 3, 2, 4], {"reordered": 1}),
        ([1, 3, 2, 2], {"reordered": 1, "duplicated": 1}),
        ([1, 5, 3], {"lost": 2, "reordered": 1}),
    ],
)
def test_subscriber_counts_what_is_wrong_with_the_order(subscriber, tally, sequences, found):
    subscriber.take(join(map(record, sequences)), 1_000_000_000)
    assert wrong(tally) == found
    assert tally.received == len(sequences)


def test_subscriber_counts_the_same_however_records_are_cut_into_frames(tally):
    chance = Random(7)
    numbers = [number for number in range(1, 200) if chance.random() > 0.1]
    numbers += chance.choices(numbers, k=20)
    whole, parts = Tally(), Tally()
    layout = Layout(SIZE, 7)
    Subscriber([b"t000001"], layout, whole, since_start=True).take(join(map(record, numbers)), 0)
    one = Subscriber([b"t000001"], layout, parts, since_start=True)
    for number in numbers:
        one.take(join([record(number)]), 0)
    assert wrong(whole) == wrong(parts)
    assert whole.duplicated > 0
    assert whole.lost > 0


def test_subscriber_counts_a_topic_it_did_not_ask_for(subscriber, tally):
    subscriber.take(join([record(1, "t000009")]), 0)
    assert wrong(tally) == {"foreign": 1}


@pytest.mark.parametrize("size", [SIZE - 1, SIZE + 1, SIZE * 2 + 4])
def test_subscriber_counts_a_record_of_another_size(subscriber, tally, size):
    subscriber.take(join([record(1, size=size)]), 0)
    assert tally.corrupt >= 1  # two of its size look like two records, both of them wrong


def test_subscriber_that_comes_later_starts_with_what_it_gets_first(tally):
    subscriber = Subscriber([b"t000001"], Layout(SIZE, 7), tally, since_start=False)
    subscriber.take(join(map(record, [41, 42, 44])), 0)
    assert wrong(tally) == {"lost": 1}
    assert subscriber.first == {b"t000001": 41}


def test_subscriber_follows_a_publisher_that_starts_anew(subscriber, tally):
    anew = [record(1, publisher=2), record(2, publisher=2)]
    subscriber.take(join([record(3), *anew]), 0)
    assert wrong(tally) == {"lost": 2}


def test_missing_is_what_never_came_at_the_end(subscriber):
    subscriber.take(join(map(record, [1, 2])), 0)
    assert subscriber.missing({b"t000001": 5, b"t000002": 2}) == 5


def test_latency_is_timed_from_the_publishers_clock(subscriber, tally):
    subscriber.take(join([record(1)]), 1_000_000_000 + 250_000_000)
    assert tally.latency().get_value_at_percentile(50) == pytest.approx(250_000, rel=0.01)
