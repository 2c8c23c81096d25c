"""The campaign's own arithmetic: cells, sums, ratios, and the page that shows them."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from bench.cli.fanout import fanout
from bench.errors import BadInput
from bench.fanout import chart, floor, results
from bench.fanout.aims import serves
from bench.fanout.cells import QUESTIONS, Cell, cells, variant
from bench.fanout.measure import expected_deliveries, per_topic
from bench.fanout.page import readme
from bench.fanout.spec import Spec

CELL = Cell("compare", variant("hub"), users=6, subscriptions=2, topics=4, publishers=2)
PARTS = [
    {"share": 0, "topics": 2, "published": 5},
    {"share": 1, "topics": 2, "published": 4},
]


def test_cells_have_names_of_their_own():
    names = [cell.name for cell in cells(tuple(QUESTIONS), quick=False)]
    assert len(set(names)) == len(names)


def test_cells_of_an_unknown_question_are_refused_with_the_nearest():
    with pytest.raises(BadInput, match="subscribers"):
        cells(("subscriber",), quick=False)


def test_published_messages_go_to_the_topics_in_turn():
    assert per_topic(CELL, PARTS) == {"t000000": 3, "t000002": 2, "t000001": 2, "t000003": 2}


def test_expected_deliveries_are_the_messages_of_everybodys_topics():
    counts = per_topic(CELL, PARTS)
    spec = Spec("", users=6, topics=4, subscriptions=2)
    by_hand = sum(counts[topic] for user in range(6) for topic in spec.topics_of(user))
    assert expected_deliveries(CELL, PARTS) == by_hand > 0


def test_ratio_pairs_the_rounds(outcome, campaign):
    above = [outcome(1, rate=10.0), outcome(2, rate=60.0)]
    below = [outcome(2, rate=20.0), outcome(1, rate=5.0)]
    found = results.ratio(campaign(), above, below, results.RATE)
    assert (found.spread.low, found.spread.high, found.interval) == (2.0, 3.0, None)


def test_outcome_that_missed_a_gate_is_in_no_figure(outcome, campaign):
    good, bad = outcome(1, rate=10.0), outcome(2, rate=60.0, counts={"received": 9})
    assert results.spread([good, bad], results.RATE).high == 10.0
    assert results.spread([bad], results.RATE) is None
    found = results.ratio(campaign(), [good, bad], [good, bad], results.RATE)
    assert found.spread.rounds == 1
    assert "| missing |" in readme(campaign(bad), [])


def test_results_come_back_as_they_were_written(tmp_path, outcome, campaign):
    whole = campaign(outcome(ramp=({"users": 6, "ready_s": 0.1, "subscribed_s": 0.2},)), outcome(2))
    results.write(whole, tmp_path)
    assert results.read(tmp_path) == whole


def test_question_measured_again_stands_in_for_what_was(outcome, campaign):
    limit = replace(CELL, question="limit")
    whole = campaign(outcome(rate=1.0), outcome(cell=limit, rate=2.0))
    again = campaign(outcome(cell=limit, rate=3.0))
    rates = [one.deliveries_per_server_cpu_s for one in results.renewed(whole, again).outcomes]
    assert rates == [1.0, 3.0]
    with pytest.raises(BadInput, match="3 rounds cannot stand in for 1"):
        results.renewed(whole, campaign(outcome(cell=limit), rounds=3))


def test_report_is_written_again_from_the_file(tmp_path, reported, outcome, campaign):
    results.write(campaign(outcome(cell=Cell("limit", variant("hub")))), tmp_path)
    assert '<img alt="Messages per server core.' in reported(tmp_path)
    assert (tmp_path / "per-core-dark.svg").is_file()


def test_results_of_another_folder_are_refused(tmp_path):
    with pytest.raises(BadInput, match="not a results folder"):
        results.read(tmp_path)


def test_page_shows_ratios_losses_and_the_study(outcome, campaign):
    group = replace(CELL, variant=variant("group"))
    lost = {"lost": 3, "missing": 4, "received": 2}
    grouped = outcome(cell=group, rate=100.0, counts=lost, expected=9)
    page = readme(campaign(outcome(rate=2000.0), grouped), [])
    assert "hub over group (ipc, 1 process, websocket) | compare | 20x (20 to 20)" in page
    assert "Of 9 records that were due to clients of group_send, 7 were lost" in page
    assert "as many records per server CPU-second" not in page  # without intervals
    assert "| 7 | 0 | 0 |" in page
    assert "182,000 messages/s" in page
    assert "1,091172" not in page


def test_page_concludes_from_intervals(outcome, campaign):
    polling = replace(CELL, transport="polling")
    group = replace(CELL, variant=variant("group"), rate=5.0)
    limit = Cell("limit", variant("hub"), users=1000, subscriptions=1000, topics=50_000)
    found = [
        outcome(number, cell, rate=rate + number, p50_ms=p50_ms, expected=10)
        for number in range(1, 11)
        for cell, rate, p50_ms in (
            (CELL, 2000.0, 1.0),
            (polling, 1000.0, 2.0),
            (group, 100.0, 1.0),
            (limit, 364_000.0, 1.0),
        )
    ]
    page = readme(campaign(*found, rounds=10), [])
    assert "ipc, 1 process, websocket, each near what it carries: a hub delivers **19" in page
    assert "ipc, 1 process, hub, 100 messages/s: WebSocket delivers **1.99 times**" in page
    assert "at the median **0.5 times** (95 % interval 0.5 to 0.5) as late" in page
    assert "2.0 times what the study reports for a core. Of that time 50 % is the kernel's" in page
    assert "| ≥ 400,000 | 364,006 (364,001 to 364,010) | **missed** |" in page
    assert "Of 300 records that were due to clients of the hub, 0 were lost" in page


def test_page_says_what_failed(outcome, campaign):
    page = readme(campaign(replace(outcome(), failure="no server\nlog")), [])
    assert "**failed**: no server" in page


def test_charts_are_drawn_of_what_was_measured(outcome, campaign):
    limit = Cell("limit", variant("hub"))
    sizes = [Cell("sizes", variant("hub"), message_bytes=size) for size in (128, 1024)]
    whole = campaign(outcome(cell=limit), *(outcome(cell=cell) for cell in sizes))
    drawn = {drawing.name: drawing.spec for drawing in chart.charts(whole)}
    assert list(drawn) == ["per-core", "cost-sizes"]
    assert "182000" in str(drawn["per-core"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rounds", "0"], "--rounds 0"),
        (["--only", "nothing-like-it"], "names no cell"),
        (["--question", "idol"], "idle"),
    ],
)
def test_command_refuses_what_measures_nothing(arguments, complaint):
    with pytest.raises(BadInput, match=complaint):
        CliRunner().invoke(fanout, arguments, catch_exceptions=False)


def test_command_finds_the_most_users_and_keeps_every_try(monkeypatch, tmp_path, outcome):
    def measured(cell, number, pinned):
        return outcome(number, cell, p95_ms=cell.users / 4)

    monkeypatch.setattr("bench.cli.fanout.measured", measured)
    arguments = ["--find-users", "--into", str(tmp_path / "found")]
    told = CliRunner().invoke(fanout, arguments, catch_exceptions=False)
    assert "held 1000 users, did not hold 1125" in told.output
    assert len(list((tmp_path / "found" / "raw").iterdir())) == len(
        results.read(tmp_path / "found").outcomes
    )
    assert (tmp_path / "found" / "README.md").is_file()


@pytest.mark.parametrize(
    "wrong",
    [
        {"counts": {"received": 9, "lost": 1}},
        {"counts": {"received": 11, "duplicated": 1}},
        {"counts": {"reordered": 1}},
        {"counts": {"closed": 1}},
        {"counts": {"corrupt": 1}},
        {"counts": {"foreign": 1}},
        {"counts": {"refused": 1}},
        {"counts": {"received": 9}},
        {"p95_ms": 300.0},
        {"p95_ms": None},
        {"failure": "no server"},
    ],
)
def test_load_holds_only_where_everything_came_as_it_should(outcome, wrong):
    assert serves(outcome())
    assert not serves(outcome(**wrong))


@pytest.mark.parametrize("round_", [1, 2])
def test_command_measures_again_what_missed_a_gate(monkeypatch, tmp_path, round_, outcome):
    tries = []

    def measured(cell, number, pinned):
        tries.append(number)
        return outcome(number, cell, counts={"received": 8 + tries.count(number)})

    monkeypatch.setattr("bench.cli.fanout.measured", measured)
    monkeypatch.setattr("bench.cli.fanout.FLOOR_SOCKETS", 10)
    monkeypatch.setattr("bench.cli.fanout.FLOOR_S", 0.05)
    folder = tmp_path / "again"
    arguments = ["--rounds", str(round_), "--only", "idle-uvicorn-ipc-group", "--into", str(folder)]
    told = CliRunner().invoke(fanout, arguments, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    assert tries == [number for number in range(1, round_ + 1) for _ in range(2)]
    assert len(list((folder / "raw").iterdir())) == 2 * round_


def test_command_lists_cells_without_measuring():
    listed = CliRunner().invoke(fanout, ["--list", "--question", "idle"]).output
    assert listed.split() == [cell.name for cell in cells(("idle",), quick=False)]


@pytest.mark.parametrize("wrong", [{"users": 0}, {"subscriptions": 5}, {"transport": "pigeon"}])
def test_spec_refuses_what_cannot_be(wrong):
    with pytest.raises(BadInput):
        Spec(**{"url": "", "topics": 4, "subscriptions": 2, **wrong})


def test_floor_counts_what_it_wrote():
    found = floor.measure(10, 4096, 0.2)
    assert found.frames > 0
    assert 0 < found.cpu_s < 2
    assert found.messages_per_cpu_s(1024) == pytest.approx(found.frames * 4 / found.cpu_s)
