"""Ratios, intervals, aims and the page, on made-up rounds."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import BadInput
from bench.layers import results as module
from bench.layers.aims import aims, verdicts
from bench.layers.cell import Cell
from bench.layers.chart import chart
from bench.layers.measures import MEASURES
from bench.layers.page import readme
from bench.layers.results import Results, losses, ratio, read, values, write

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
    return Results("2026-01-02T03:04:05+00:00", "2026", rounds, 1.0, tuple(cells), PROVENANCE)


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


def test_losses_are_summed_over_rounds() -> None:
    assert losses(results(), "one_way", "redis") == (300, 3, 6)
    assert losses(results(), "one_way", "redis_pubsub") is None


def test_results_survive_the_file(tmp_path: Path) -> None:
    write(results(), tmp_path)
    assert read(tmp_path) == results()
    assert [path.name for path in tmp_path.iterdir()] == ["layers.json"]


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


def test_verdict_on_interference_is_of_ipc_by_itself() -> None:
    cells = tuple(
        Cell("interference", peer, 1, {"p99_ratio": value})
        for peer, value in (("ipc", 1.1), ("redis", 9.0))
    )
    verdict = verdicts(replace(results(), cells=cells))[-1]
    assert verdict.reached is True
    assert verdict.ratio.spread.median == 1.1


def test_page_shows_losses_and_what_is_missing() -> None:
    page = readme(results(), ["layers"])
    assert "| Redis core, unix socket | 1,000 (1,000 to 1,000) |" in page
    assert "| 300 | 3 | 6 |" in page
    assert "Redis pub/sub, unix socket, round 2: **missing**: it ended" in page
    assert "quick run" in page
    assert "![layers](layers.svg)" in page


def test_page_of_an_interrupted_run_says_so() -> None:
    assert "**Interrupted**" in readme(replace(results(), finished=None), [])
    assert "**Interrupted**" not in readme(results(), [])


def test_chart_has_a_panel_for_each_measure_taken() -> None:
    drawing = chart(results())
    assert len(drawing.spec["vconcat"]) == 1
    assert chart(replace(results(), cells=())) is None
