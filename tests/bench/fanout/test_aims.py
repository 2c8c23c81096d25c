"""Each aim is reached, missed or not measured, and the page says which."""

from dataclasses import replace

import pytest

from bench.fanout.aims import verdicts
from bench.fanout.cells import Cell, variant
from bench.fanout.page import readme

HUB = Cell("limit", variant("hub"), users=200, subscriptions=20, topics=200)
GROUP = replace(HUB, variant=variant("group"))
POLLS = replace(HUB, transport="polling")
MANY = Cell("limit", variant("hub"), users=1_000, subscriptions=1_000, topics=50_000)
CHURN = Cell("churn", variant("hub"), 500, 40, 1_000)
TEN_MILLION = 10_000_000


def reached(results):
    """Return the verdicts that are one, each with what it is of."""
    return {one.aim.split(",")[0]: one.reached for one in verdicts(results)}


def test_aims_of_which_nothing_was_measured_are_named(campaign, outcome):
    few = outcome(cell=replace(HUB, subscriptions=1)), outcome(cell=replace(GROUP, subscriptions=1))
    for results in (campaign(), campaign(*few)):
        assert {one.reached for one in verdicts(results)} == {None}
        assert readme(results, []).count("| not measured |") == 5


@pytest.mark.parametrize(("rate", "verdict"), [(20.0, True), (19.9, False)])
def test_hub_is_to_deliver_twenty_times_what_group_send_does(campaign, outcome, rate, verdict):
    results = campaign(outcome(cell=HUB, rate=rate), outcome(cell=GROUP, rate=1.0))
    assert reached(results)["hub over group_send"] is verdict


def test_hub_is_not_held_to_that_under_a_small_load(campaign, outcome):
    small = [replace(cell, question="compare") for cell in (HUB, GROUP)]
    results = campaign(*(outcome(cell=cell, rate=1.0) for cell in small))
    assert reached(results)["hub over group_send"] is None
    assert "| hub over group (ipc, 1 process, websocket) | compare | 1x" in readme(results, [])


@pytest.mark.parametrize(
    ("rate", "p50_ms", "wanted"),
    [(1.10, 0.60, [True, True]), (1.09, 0.60, [False, True]), (1.10, 0.61, [True, False])],
)
def test_websocket_is_to_beat_long_polling(campaign, outcome, rate, p50_ms, wanted):
    socket = outcome(cell=HUB, rate=rate, p50_ms=p50_ms)
    results = campaign(socket, outcome(cell=POLLS, rate=1.0, p50_ms=1.0))
    found = [one.reached for one in verdicts(results) if one.aim.startswith("WebSocket")]
    assert found == wanted


@pytest.mark.parametrize(("rate", "verdict"), [(400_000.0, True), (399_999.0, False)])
def test_core_is_to_deliver_four_hundred_thousand(campaign, outcome, rate, verdict):
    results = campaign(outcome(cell=MANY, rate=rate))
    assert reached(results)["records per server CPU-second"] is verdict


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, True),
        ({"counts": {"received": TEN_MILLION - 1, "lost": 1}}, False),
        ({"counts": {"received": TEN_MILLION, "reordered": 1}}, False),
        ({"churned": {"duplicated": 1}}, False),
        ({"churned": {"lost": 1}}, False),
        ({"expected": TEN_MILLION - 1}, None),
    ],
)
def test_ten_million_are_to_come_once_and_in_order_to_visitors_too(
    campaign, outcome, more, verdict
):
    found = {"counts": {"received": TEN_MILLION}, "expected": TEN_MILLION, **more}
    results = campaign(outcome(cell=CHURN), outcome(2, cell=CHURN, **found))
    assert reached(results)["deliveries while others come and go"] is verdict


def test_page_shows_how_long_it_took_until_everybody_was_there(campaign, outcome):
    def ramp(last):
        return tuple(
            {"users": min(users, last), "ready_s": users / 100, "subscribed_s": users / 50}
            for users in range(100, 1_001, 100)
        )

    whole, less = outcome(cell=MANY, ramp=ramp(1_000)), outcome(2, cell=MANY, ramp=ramp(950))
    page = readme(campaign(whole, less), [])
    assert "| limit, uvicorn-ipc | 1,000 | 500 | 5.00 | 10.00 | yes |" in page
    assert "| limit, uvicorn-ipc | 1,000 | 1,000 | 10.00 | 20.00 | 1 of 2 rounds |" in page


def test_page_shows_what_an_idle_socket_costs_in_rounds_that_count(campaign, outcome):
    cell = Cell("idle", variant("hub"), users=1_024, subscriptions=0, topics=1)
    ramp = ({"users": 1_024, "ready_s": 1.5, "subscribed_s": 1.5},)
    nothing = {"expected": 0, "wanted": 0, "published": 0, "rss_idle_bytes": 0, "ramp": ramp}
    rounds = [
        outcome(
            number,
            cell,
            None,
            counts={"received": 0, **more},
            rss_subscribed_bytes=grown,
            **nothing,
        )
        for number, grown, more in ((1, 2 << 20, {}), (2, 4 << 20, {}), (3, 9 << 20, {"closed": 1}))
    ]
    page = readme(campaign(*rounds), [])
    assert "| uvicorn-ipc | 1,024 | 0 | 3.0 | 1.50 | 2/3 | closed |" in page
