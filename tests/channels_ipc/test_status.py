import pytest

from channels_ipc.status import FULL_SLOTS, SIZE, Status, StatusView, full_slot, group_place


@pytest.fixture
def page():
    return memoryview(bytearray(SIZE))


def colliding(place, name):
    return next(
        other for number in range(1_000_000) if place(other := f"{name}{number}") == place(name)
    )


def test_group_is_seen_until_it_is_discarded(page):
    status, view = Status(page), StatusView(page)
    assert not view.wants(group_place("room"))
    status.add_group("room")
    status.add_group("room")
    assert view.wants(group_place("room"))
    status.discard_group("room")
    assert not view.wants(group_place("room"))


def test_group_that_shares_a_place_keeps_it(page):
    status, view = Status(page), StatusView(page)
    other = colliding(group_place, "room")
    status.add_group("room")
    status.add_group(other)
    status.discard_group(other)
    assert view.wants(group_place("room"))


def test_full_channel_is_seen_until_it_is_cleared(page):
    status, view = Status(page), StatusView(page)
    status.mark_full("channel", 12.5)
    assert view.full_until[full_slot("channel")] == 12.5
    status.clear_full("channel")
    assert not any(view.full_until[slot] for slot in range(FULL_SLOTS))


def test_full_channel_that_shares_a_slot_stays_full(page):
    status, view = Status(page), StatusView(page)
    other = colliding(full_slot, "channel")
    status.mark_full("channel", 12.5)
    status.mark_full(other, 20.0)
    status.clear_full(other)
    assert view.full_until[full_slot("channel")] == 12.5


def test_discarding_what_was_never_added_does_nothing(page):
    status = Status(page)
    status.discard_group("room")
    status.clear_full("channel")
    assert bytes(page) == bytes(SIZE)
