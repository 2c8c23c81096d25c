"""Ratios, intervals, aims and the page, on made-up rounds."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import BadInput
from bench.layers import results as module
from bench.layers.aims import aims, verdicts
from bench.layers.cell import Cell
from bench.layers.chart import compared, comparison, detail, drawings, label
from bench.layers.measures import MEASURES
from bench.layers.page import readme
from bench.layers.results import Results, losses, ratio, read, values, write
from bench.provenance import PROJECT

PROVENANCE = {
    "commit": "0123abc",
    "machine": {"cpu": "A processor", "usable_processors": 2, "kernel": "Linux 6"},
    "versions": {"python": "3.11", "channels": "4.3.2"},
}


def one_way(peer: str, number: int, rate: float, **more: object) -> Cell:
    counts = {"sent": 100, "received": 100, "lost": 0, "duplicates": 0} | more
    return Cell("one_way", peer, number, {"messages_per_s": rate}, **counts)


def results(rounds: int = 3) -> Results:
    cells = []
    for number in range(1, rounds + 1):
        cells.append(one_way("ipc", number, 100_000.0 + number, cpu_us_per_message=8.0))
        cells.append(
            one_way("redis", number, 1000.0, cpu_us_per_message=800.0, duplicates=2, lost=1)
        )
        cells.append(Cell("one_way", "redis_pubsub", number, failure="Traceback\nit ended"))
    return Results(
        started="2026-01-02T03:04:05+00:00",
        finished="2026",
        rounds=rounds,
        quick=True,
        seed=1,
        measures=("one_way",),
        peers=("ipc", "redis", "redis_pubsub"),
        cells=tuple(cells),
        provenance=PROVENANCE,
    )


def test_ratio_is_of_the_same_round() -> None:
    cells = [one_way("ipc", n, 10.0 * n) for n in (1, 2, 3)]
    cells += [one_way("redis", n, 1.0 * n) for n in (3, 2, 1)]
    found = ratio(replace(results(), cells=tuple(cells)), "one_way", ("ipc", "redis"))
    assert (found.spread.low, found.spread.median, found.spread.high) == (10, 10, 10)


def test_ratio_without_one_side_is_missing() -> None:
    assert ratio(results(), "one_way", ("ipc", "redis_pubsub")) is None


@pytest.mark.parametrize(("rounds", "has"), [(9, False), (10, True)])
def test_interval_takes_ten_rounds(rounds: int, has: bool) -> None:
    found = ratio(results(rounds), "one_way", ("ipc", "redis"))
    assert (found.interval is not None) is has
    if has:
        assert found.interval.low <= found.interval.estimate <= found.interval.high


def test_values_leave_out_rounds_that_failed() -> None:
    assert values(results(), "one_way", "redis_pubsub", "messages_per_s") == {}
    assert values(results(), "one_way", "redis", module.CPU) == dict.fromkeys((1, 2, 3), 800.0)


def test_values_leave_out_what_was_discarded() -> None:
    cells = [one_way("ipc", 1, 5.0, discarded=("noise",)), one_way("ipc", 1, 7.0, attempt=2)]
    found = values(replace(results(), cells=tuple(cells)), "one_way", "ipc", "messages_per_s")
    assert found == {1: 7.0}


def test_losses_are_summed_over_rounds() -> None:
    assert losses(results(), "one_way", "redis") == (300, 3, 6)
    assert losses(results(), "one_way", "redis_pubsub") is None


def test_results_survive_the_file(tmp_path: Path) -> None:
    write(results(), tmp_path)
    assert read(tmp_path) == results()
    assert [path.name for path in tmp_path.iterdir()] == ["layers.json"]


def test_report_is_written_again_from_the_file(tmp_path: Path, reported) -> None:
    write(results(), tmp_path)
    assert "## One way to one named channel" in reported(tmp_path)
    assert list(tmp_path.glob("*-dark.svg"))


def test_folder_without_results_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=str(tmp_path)):
        read(tmp_path)


def test_aims_name_measures_and_their_peers() -> None:
    for aim in aims():
        assert {aim.peer, aim.against} <= set(MEASURES[aim.measure].peers)


def test_verdicts_come_from_the_data() -> None:
    found = {verdict.aim.title: verdict.reached for verdict in verdicts(results())}
    assert found["one way, ipc over redis"] is True
    assert found["one way, ipc over redis_pubsub"] is None
    assert found["CPU per message one way, ipc over redis"] is True
    slow = [replace(cell, figures={"messages_per_s": 5e4}) for cell in results().cells[:1]]
    slower = replace(results(), cells=(*slow, results().cells[1]))
    found = {verdict.aim.title: verdict.reached for verdict in verdicts(slower)}
    assert found["one way, ipc over redis"] is False


@pytest.mark.parametrize("fault", [{"lost": 1}, {"duplicates": 1}], ids=str)
def test_aim_is_not_reached_by_losing_or_doubling_messages(fault: dict) -> None:
    cells = (one_way("ipc", 4, 1e6, cpu_us_per_message=1.0, **fault), *results().cells)
    found = verdicts(replace(results(), cells=cells))
    assert not any(verdict.reached for verdict in found if verdict.aim.measure == "one_way")


def test_verdict_on_interference_is_of_ipc_by_itself() -> None:
    cells = tuple(
        Cell("interference", peer, 1, {"p99_ratio": value})
        for peer, value in (("ipc", 1.1), ("redis", 9.0))
    )
    verdict = verdicts(replace(results(), cells=cells))[-1]
    assert verdict.reached is True
    assert verdict.ratio.spread.median == 1.1


def test_page_shows_losses_and_what_is_missing() -> None:
    page = readme(results(), drawings(results()))
    assert "| Redis core, unix socket | 1,000 (1,000 to 1,000) |" in page
    assert "| 300 | 3 | 6 |" in page
    assert "Redis pub/sub, unix socket: **missing** in 3 of 3 rounds: it ended" in page
    assert "3 of 3 rounds of short cells" in page
    assert 'src="layers.svg"' in page
    assert 'srcset="layers-dark.svg"' in page


def test_page_states_how_it_was_measured_before_any_figure() -> None:
    page = readme(results(), drawings(results()))
    places = [
        page.index(one)
        for one in ("0123abc", "A processor", "python 3.11", "shuffled", "## Aims", "100x")
    ]
    assert places == sorted(places)


def test_page_links_to_the_matrix() -> None:
    page = (PROJECT / "docs" / "channel-layers.md").read_text()
    assert "## The matrix" in page
    assert "../../docs/channel-layers.md#the-matrix" in readme(results(), [])


def test_page_shows_what_the_same_layer_differs_by() -> None:
    cells = (*results().cells, *(one_way("ipc_again", n, 110_000.0) for n in (1, 2, 3)))
    page = readme(replace(results(), cells=cells), [])
    assert "| one way to one named channel | 1.1x (1.1 to 1.1) |" in page
    assert "The same layer twice" not in readme(results(), [])


def test_page_of_an_interrupted_run_says_so() -> None:
    assert "**Interrupted**" in readme(replace(results(), finished=None), [])
    assert "**Interrupted**" not in readme(results(), [])


def test_detail_has_a_panel_for_each_measure_taken() -> None:
    assert len(detail(results()).spec["vconcat"]) == 1
    assert drawings(replace(results(), cells=())) == []


def test_comparison_has_a_point_for_each_layer_measured_in_the_same_rounds() -> None:
    (row,) = compared(results())
    assert (row["peer"], row["label"]) == ("redis", "100×")
    assert row["median"] == pytest.approx(100, rel=0.01)
    assert comparison(results()).name == "layers"


@pytest.mark.parametrize(("value", "said"), [(4.25, "4.2×"), (12.4, "12×"), (1234.0, "1,234×")])
def test_comparison_says_ratios_in_two_digits_or_whole(value: float, said: str) -> None:
    assert label(value) == said
