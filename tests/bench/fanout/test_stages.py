"""What each stage counted, and the gates that say whether a measurement counts."""

import pytest

from bench.fanout.cells import Cell, variant
from bench.fanout.measure import difference, publishers_sum, wanted_messages
from bench.fanout.page import readme
from bench.fanout.stages import HUB, LAYER, SUBSCRIBERS, stages

COUNTED = {"received": 5, "delivered": 10, "dropped": 0, "abandoned": 0, "layer_dropped": 0}
GROUP = Cell("compare", variant("group"))


def hub(**counted):
    return {**COUNTED, **counted}


@pytest.mark.parametrize(
    ("counts", "failing"),
    [
        ({}, []),
        ({"received": 9}, ["accounting"]),
        ({"received": 9, "missing": 1}, []),
        ({"received": 9, "lost": 1, "closed": 1}, ["closed"]),
        ({"received": 8, "lost": 1, "closed": 1}, ["accounting", "closed"]),
        ({"received": 11, "duplicated": 1}, []),
        ({"received": 0, "missing": 10}, ["something came"]),
        ({"corrupt": 1}, ["wrong records"]),
        ({"foreign": 1}, ["wrong records"]),
        ({"refused": 1}, ["refused"]),
    ],
)
def test_gates_fire_where_the_sums_do_not_agree(outcome, counts, failing):
    gates = outcome(cell=GROUP, counts=counts).gates
    assert [gate.name for gate in gates if not gate.ok] == failing


def test_gates_of_a_cell_that_is_due_nothing_do_not_ask_for_anything(outcome):
    idle = outcome(cell=GROUP, counts={"received": 0}, expected=0, wanted=0, published=0)
    assert idle.valid


@pytest.mark.parametrize(
    ("found", "off"),
    [
        ({}, {}),
        ({"hub": hub(received=4)}, {LAYER: 1}),
        ({"hub": hub(received=3, layer_dropped=1), "publisher": {"layer_dropped": 1}}, {}),
        ({"hub": hub(received=6)}, {LAYER: 1}),
        ({"hub": hub(received=6), "churned": {"visits": 1}, "published": 6}, {}),
        ({"hub": hub(received=7), "churned": {"visits": 1}, "published": 6}, {LAYER: 1}),
        ({"hub": hub(received=4, layer_dropped=None)}, {LAYER: 1}),
        ({"hub": hub(delivered=13, dropped=1, abandoned=2)}, {}),
        ({"hub": hub(delivered=13), "churned": {"received": 3}}, {}),
        ({"hub": hub(delivered=14), "churned": {"received": 3}}, {HUB: 1}),
        ({"counts": {"received": 9}}, {HUB: 1, SUBSCRIBERS: 1}),
        ({"counts": {"received": 11, "duplicated": 1}, "hub": hub(delivered=11)}, {}),
    ],
)
def test_stages_say_by_how_much_they_do_not_agree(outcome, found, off):
    one = outcome(**{"hub": hub(), **found})
    assert {stage.name: stage.off for stage in stages(one) if stage.off} == off
    assert one.valid == (not {HUB, SUBSCRIBERS} & set(off))


def test_page_says_whether_all_sums_agree(outcome, campaign):
    good, bad = outcome(hub=hub()), outcome(2, hub=hub(received=3))
    assert "they **agree to the message**" in readme(campaign(good, outcome(cell=GROUP)), [])
    page = readme(campaign(good, bad), [])
    assert "**1 do not agree**" in page
    assert "round 2, publishers to hub: off by **2**: 5 came, and 3 received and 0" in page


def test_page_tells_what_became_of_every_message_of_the_churn(outcome, campaign):
    cell = Cell("churn", variant("hub"), 500, 40, 1_000)
    visitors = {"visits": 7, "received": 3}
    page = readme(campaign(outcome(cell=cell, hub=hub(delivered=13), churned=visitors)), [])
    assert "13 got by clients, 0 dropped for slow ones, 0 left behind" in page
    assert "7 visitors among them got 3, with 0 holes" in page


def test_sum_of_what_is_not_counted_is_none():
    part = {"cpu_s": 1.0, "waited_s": 0.5, "given_up": 1, "layer_dropped": 2}
    assert publishers_sum([part, part])["layer_dropped"] == 4
    assert publishers_sum([part, {**part, "layer_dropped": None}])["layer_dropped"] is None
    grown = difference(
        {"received": 1, "layer_dropped": None}, {"received": 3, "layer_dropped": None}
    )
    assert grown == {"received": 2, "layer_dropped": None}


def test_wanted_messages_are_those_of_a_topic_that_somebody_has():
    parts = [{"share": 0, "topics": 50, "published": 100}]
    one = Cell("compare", variant("hub"), users=1, subscriptions=3, topics=50)
    assert wanted_messages(one, parts) == 6
    everybody = Cell("compare", variant("hub"), users=500, subscriptions=3, topics=50)
    assert wanted_messages(everybody, parts) == 100
