"""The studies as data, the figures, the reasons, and the page."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from altair import VConcatChart

from bench import reference
from bench.balancing import kernel, published
from bench.balancing.cells import (
    ECHO_CELLS,
    ECHO_COLUMNS,
    HTTP_CELLS,
    HTTP_COLUMNS,
    EchoCell,
    HttpCell,
)
from bench.balancing.chart import charts
from bench.balancing.figures import FIGURES, Readings
from bench.balancing.measure import sent
from bench.balancing.page import explained, heading, readme
from bench.balancing.reading import Study, read, read_study, write, write_study
from bench.balancing.remarks import remarks, rounding
from bench.balancing.rounds import Plan
from bench.cli.http import study_columns
from bench.errors import BadInput
from bench.reference import Span
from bench.tools import TOOLS
from bench.tools.tool import Job, Outcome
from bench.variants import resolve

CELL = HTTP_CELLS[0]
ONE, NGINX = HTTP_COLUMNS[0], HTTP_COLUMNS[2]


@pytest.fixture
def study() -> Study:
    return Study(
        title="HTTP",
        kind="http",
        reference="HTTP balancing study",
        started="2026-01-01T00:00:00+00:00",
        finished="2026-01-01T01:00:00+00:00",
        rounds=2,
        columns=(ONE, NGINX),
        cells=(CELL,),
        tools=("locust", "ab"),
        missing={"swarm": "there is no engine"},
        server_cores=1,
        generator_cores=1,
        configurations={},
        provenance={
            "machine": {"cpu": "a processor", "usable_processors": 2, "kernel": "Linux"},
            "versions": {"python": "3.11"},
            "commit": "abc",
        },
    )


def test_every_row_of_the_http_study_is_a_cell():
    rows = {
        (row.connections, row.requests, row.keepalive)
        for row in reference.http_balancing()
        if row.tool in TOOLS
    }
    cells = {(cell.clients, cell.requests, cell.keepalive) for cell in HTTP_CELLS if not cell.only}
    assert cells == rows


def test_every_row_of_the_websocket_study_is_a_cell():
    rows = {
        (int(row.requests_per_connection), row.connections)
        for row in reference.websocket_balancing()
        if row.requests_per_connection.isdigit()
    }
    assert {(cell.messages, cell.connections) for cell in ECHO_CELLS} == rows
    detailed = {
        (int(row.requests_per_connection), row.connections)
        for row in reference.websocket_balancing()
        if row.detailed and row.requests_per_connection.isdigit()
    }
    assert {(one.messages, one.connections) for one in ECHO_CELLS if one.detail} == detailed


def test_every_column_has_its_published_figures():
    yardstick = next(one for one in HTTP_COLUMNS if one.name == "gunicorn x8")
    swarm = next(one for one in HTTP_COLUMNS if one.name == "swarm")
    replicas_8 = next(one for one in HTTP_COLUMNS if one.name == "swarm x8")
    assert published.rate(CELL, "ab", ONE) == Span(456, 456)
    assert published.rate(CELL, "ab", NGINX) == Span(685, 685)
    assert published.errors(CELL, "loadtest", HTTP_COLUMNS[1]) == Span(3, 3)
    assert published.rate(CELL, "loadtest", yardstick) == Span(1150, 1150)
    assert published.rate(CELL, "ab", yardstick) == Span(1196, 1196)
    assert published.rate(CELL, "locust", yardstick) is None
    assert published.errors(CELL, "ab", yardstick) == Span(0, 0)
    assert published.resource("cpu_max", yardstick, echo=False) == Span(405, 405)
    assert published.resource("pss_mb", yardstick, echo=False) == Span(380, 380)
    assert published.resource("processes", yardstick, echo=False) == Span(9, 9)
    assert published.rate(CELL, "ab", swarm) == Span(558, 1014)
    assert published.rate(HTTP_CELLS[1], "loadtest", replicas_8) == Span(180, 180)
    assert published.rate(HTTP_CELLS[1], "ab", replicas_8) is None
    assert published.errors(HTTP_CELLS[1], "loadtest", replicas_8) is None
    assert published.resource("processes", swarm, echo=False) == Span(36, 36)
    assert published.resource("processes", replicas_8, echo=False) is None
    assert published.rate(EchoCell(15, 400), "locust", ECHO_COLUMNS[3]) == Span(386, 386)
    assert published.rate(EchoCell(15, 400), "locust", ECHO_COLUMNS[0]) == Span(169, 169)
    assert published.rate(EchoCell(15, 400, detail=True), "locust", ECHO_COLUMNS[2]) == Span(
        420, 420
    )
    assert published.errors(EchoCell(15, 400), "locust", ECHO_COLUMNS[1]) == Span(3, 24)
    assert published.connects(ECHO_COLUMNS[0]) == Span(124, 124)
    assert published.resource("processes", ECHO_COLUMNS[0], echo=True) == Span(10, 10)
    assert published.resource("processes", NGINX, echo=False) == Span(13, 13)


def test_columns_are_variants():
    assert [resolve(one.variant).name for one in (*HTTP_COLUMNS, *ECHO_COLUMNS)]


def test_column_that_cannot_run_here_is_left_out_with_the_reason(monkeypatch):
    def require(variant, _):
        if variant.proxy == "swarm":
            raise BadInput("there is no Docker engine: apt-get install docker.io")

    monkeypatch.setattr("bench.supervise.require", require)
    absent = {}
    columns = study_columns(HTTP_COLUMNS, (), absent)
    assert [one.name for one in columns] == [
        "one worker",
        "apache",
        "nginx",
        "haproxy",
        "gunicorn x8",
        "one worker (again)",
    ]
    assert absent["swarm"] == "there is no Docker engine: apt-get install docker.io"
    assert absent.keys() == {"swarm", "swarm x8"}
    assert study_columns(HTTP_COLUMNS, ("nginx",), {}) == (NGINX,)


def test_ratio_of_published_figures_has_the_range_of_both():
    assert published.ratio(Span(685, 685), Span(456, 456)) == "1.50x"
    assert published.ratio(Span(400, 800), Span(400, 400)) == "1.00 to 2.00x"
    assert published.ratio("many", Span(400, 400)) == ""


def test_wrk_has_cells_of_its_own_and_takes_no_part_in_counted_ones():
    plan = Plan(HTTP_COLUMNS, HTTP_CELLS, tuple(TOOLS.values()), 1, seed=1)
    assert {tool.name for cell, tool in plan.pairs() if cell.only == "wrk"} == {"wrk"}
    assert "wrk" not in {tool.name for cell, tool in plan.pairs() if not cell.only}


def test_order_is_shuffled_by_round_and_the_same_for_a_seed():
    plan = Plan(HTTP_COLUMNS, HTTP_CELLS, tuple(TOOLS.values()), 20, seed=1)
    orders = [plan.order(round_) for round_ in range(1, 21)]
    assert all(sorted(one, key=id) == sorted(HTTP_COLUMNS, key=id) for one in orders)
    assert len({tuple(column.name for column in one) for one in orders}) > 5
    assert plan.order(3) == replace(plan, rounds=3).order(3)
    pairs = plan.order_on(1, ONE)
    assert len(pairs) == len(set(pairs)) == len(plan.pairs())
    cells = [cell for cell, _ in pairs]
    changes = sum(one != other for one, other in pairwise(cells))
    assert changes == len(HTTP_CELLS) - 1, "the tools of a cell stay together"


def test_no_round_measures_nothing():
    with pytest.raises(BadInput, match="--rounds 0"):
        Plan(HTTP_COLUMNS, HTTP_CELLS, (), 0, seed=1)


def test_reading_survives_its_file(reading, study, tmp_path):
    one = reading(failed=2, errors={"reset": 2})
    write(one, tmp_path)
    assert read(tmp_path) == [one]
    write_study(study, tmp_path)
    assert read_study(tmp_path) == study
    with pytest.raises(BadInput, match=r"no study\.json"):
        read_study(tmp_path / "elsewhere")


def test_report_is_written_again_from_the_file(reading, study, tmp_path, reported):
    (tmp_path / "raw").mkdir()
    write(reading(), tmp_path / "raw")
    write_study(study, tmp_path)
    page = reported(tmp_path)
    assert "| locust: **times one worker** | 1.00x | – |" in page
    assert '<img alt="Replies per second.' in page


def test_rate_of_the_detailed_view_is_that_of_its_sending(reading):
    phases_s = {"opening": 0.5, "sending": 0.25, "closing": 0.1, "whole": 0.85}
    one = reading(ok=500, phases_s=phases_s, batches=2)
    assert FIGURES["rps"].value(one) == 2000
    assert FIGURES["connects"].value(one) == 32 * 2 / 0.5
    assert FIGURES["closes"].value(one) == pytest.approx(32 * 2 / 0.1)
    assert FIGURES["per_cpu_s"].value(one) == pytest.approx(500 / 0.9)


def test_reading_that_misses_a_gate_does_not_count_and_a_second_try_does(reading):
    first, second = reading(ok=10, foreign=True), reading(ok=1000, attempt=2)
    readings = Readings((first, second))
    assert readings.spread(CELL.name, "locust", ONE.name, "rps").median == 1000
    assert readings.discarded() == [first]
    assert Readings((first,)).spread(CELL.name, "locust", ONE.name, "rps") is None
    assert "foreign CPU" in Readings((first,)).why_not(CELL.name, "locust", ONE.name)


@pytest.mark.parametrize(("ok", "failed", "counts"), [(1968, 0, True), (900, 900, False)])
def test_reading_counts_only_where_what_was_asked_for_was_sent(ok, failed, counts):
    """A client may have one request less, and not all of them half of theirs."""
    gate = sent(Outcome(ok, 180.0, 0.0, failed=failed), HttpCell(32, 2_000, keepalive=False))
    assert (gate.ok, gate.advisory) == (counts, False)
    assert gate.reason == ("" if counts else "only 1,800 of 2,000 requests were sent, in 180 s")


def test_ratio_is_taken_within_a_round(reading):
    rounds = [
        one
        for number, slow, fast in ((1, 100, 200), (2, 1000, 3000))
        for one in (
            reading(ok=slow, round_=number),
            reading(ok=fast, round_=number, column=NGINX.name),
        )
    ]
    found = Readings(tuple(rounds)).ratio(CELL.name, "locust", (NGINX.name, ONE.name))
    assert (found.spread.low, found.spread.high, found.interval) == (2, 3, None)


@pytest.mark.parametrize(
    ("slow", "said"),
    [
        ({"opened": 50}, "ab made 0.06"),
        ({"generator_s": 0.97}, "ab used 97% of its own processor"),
        ({"failed": 300}, "300 of 1,100 requests of ab failed"),
        ({"mean_ms": 10.0}, "only 25% of the clients of ab"),
        ({"server_s": 0.4}, "cost the server"),
        ({"server_s": 0.72}, "ab had the server work for 0.72 s in a second, and locust for 0.90"),
    ],
)
def test_tools_that_disagree_are_told_why(reading, study, slow, said):
    fast = {"opened": 1000, "ok": 1000}
    both = (
        reading("locust", **fast),
        reading("ab", **{"ok": 800, "opened": 800, "server_s": 0.72, "mean_ms": 40.0, **slow}),
    )
    (remark,) = remarks(study, Readings(both))
    assert remark.startswith("one worker, 32 x 20000, close: ab 800, locust 1,000.")
    assert said in remark


def test_tools_that_disagree_by_little_of_anything_are_not_told_why(reading, study):
    both = reading("locust"), reading("ab", ok=960, opened=960, server_s=0.9 * 0.96)
    (remark,) = remarks(study, Readings(both))
    assert "Nothing that was measured tells why" in remark


def test_tools_that_differ_less_than_their_rounds_agree(reading, study):
    both = [
        reading(tool, ok=ok, round_=number)
        for tool, oks in (("locust", (900, 1100)), ("ab", (800, 1000)))
        for number, ok in enumerate(oks, 1)
    ]
    assert remarks(study, Readings(tuple(both))) == []


def test_coarse_latencies_are_remarked_on(reading, study):
    coarse = reading("ab", p50_ms=1.0, latency_step_ms=1.0)
    (said,) = rounding(study, Readings((coarse, reading("locust", p50_ms=0.7))))
    assert said.startswith("ab prints latencies in steps of 1 ms")


def test_page_has_ratios_published_figures_errors_and_cores(reading, study):
    readings = Readings(
        (
            reading(),
            reading(column=NGINX.name, ok=900, failed=100, errors={"reset": 100}),
            reading("ab", foreign=True),
        )
    )
    page = readme(study, readings)
    assert "**Cores: 1 for the server, 1 for the generator.**" in page
    assert "| locust: **times one worker** | 1.00x | 0.90x |" in page
    assert "| ab: published, times one worker | 1.00x | 1.50x |" in page
    assert "100 reset of 1,000" in page
    assert "- `reset`: the connection was cut off" in page
    assert "- swarm: there is no engine" in page
    assert "others were at work" in page


AGAIN = HTTP_COLUMNS[-1]


def rounds_of(reading, column, rate, tool="locust"):
    """Return ten rounds of ``column`` that answer about ``rate`` requests."""
    return [
        replace(reading(tool, column=column.name, ok=rate + number), round=number)
        for number in range(1, 11)
    ]


@pytest.mark.parametrize(
    ("again", "nginx"),
    [
        (1_000, "| nginx | 1 more, 0 less, 0 not told apart: 1.20 to 1.20 |"),
        (1_300, "| nginx | 0 more, 0 less, 1 not told apart: 1.20 to 1.20 |"),
    ],
)
def test_front_is_held_to_the_first_column_and_to_what_that_differs_by_from_itself(
    reading, study, again, nginx
):
    study = replace(study, rounds=10, columns=(ONE, NGINX, AGAIN))
    readings = Readings(
        (
            *rounds_of(reading, ONE, 1_000),
            *rounds_of(reading, NGINX, 1_200),
            *rounds_of(reading, AGAIN, again),
        )
    )
    page = readme(study, readings)
    assert nginx in page
    assert f"to a factor of {'1.30' if again > 1_000 else '1.000'} per server-CPU-second" in page


@pytest.mark.parametrize(
    ("haproxy", "held"),
    [
        (1_500, "0 more, 1 less, 0 not told apart: 0.801 to 0.801"),
        (1_000, "1 more, 0 less, 0 not told apart: 1.20 to 1.20"),
        (1_150, "0 more, 0 less, 1 not told apart: 1.043 to 1.043"),  # as the first and itself
    ],
)
def test_fronts_of_as_many_processes_are_held_to_each_other(reading, study, haproxy, held):
    columns = {column.name: column for column in HTTP_COLUMNS}
    rates = {"nginx": 1_200, "haproxy": haproxy, "swarm x8": 900, "gunicorn x8": 900}
    study = replace(study, rounds=10, columns=(ONE, *(columns[name] for name in rates), AGAIN))
    rates |= {ONE.name: 1_000, AGAIN.name: 1_100}
    columns |= {ONE.name: ONE, AGAIN.name: AGAIN}
    readings = Readings(
        tuple(
            one for name, rate in rates.items() for one in rounds_of(reading, columns[name], rate)
        )
    )
    page = readme(study, readings).splitlines()
    rows = [line for line in page if line.startswith("|") and " against " in line]
    assert rows == [f"| nginx against haproxy | {held} | {held} |"]


def test_page_has_what_each_front_used_beside_what_was_published(reading, study):
    one, other = reading(), reading(column=NGINX.name)
    other = replace(other, server=replace(other.server, pss_max_bytes=70_000_000, processes_max=7))
    _, _, resources = readme(study, Readings((one, other))).partition("## Resources\n")
    lines = resources.partition("\n## ")[0].splitlines()
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in lines]
    assert ["CPU max, cores", "0.95", "0.95"] in rows
    assert ["memory, MB", "50", "70"] in rows
    assert ["processes", "2", "7"] in rows
    assert ["published", "2", "13"] in rows


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("status 503", "another status"),
        ("closed 1011", "closed with this code"),
        ("closed early", "before the reply did"),
        ("opening: status 502", "handshakes"),
        ("no local port left", "nobody was asked"),
    ],
)
def test_error_that_names_more_is_explained_by_its_kind(kind, said):
    assert said in explained(kind)


def test_page_has_what_each_front_does_of_its_processor_beside_what_it_does_of_the_time(
    reading, study
):
    readings = Readings((reading(), reading(column=NGINX.name, ok=900, server_s=0.45)))
    page = readme(study, readings)
    assert "| locust: **times one worker** | 1.00x | 0.90x |" in page
    assert "| locust: **times one worker, per server-CPU-second** | 1.00x | 1.80x |" in page


def test_page_says_who_keeps_no_connection_where_they_should_be_kept(reading, study):
    kept = next(cell for cell in HTTP_CELLS if cell.keepalive)
    both = (reading(cell=kept.name), reading(cell=kept.name, column=NGINX.name, opened=50))
    page = readme(replace(study, cells=(CELL, kept)), Readings(both))
    before, _, after = page.partition(f"## {heading(kept)}\n")
    assert "sync worker closes every connection" in after
    assert "sync worker closes every connection" not in before
    assert "Connections per request are the kernel's count" in before
    assert "| locust: connections per request | 1 | 0.05 |" in after


def test_page_says_that_all_loops_were_closed(reading, study):
    assert "Every tool ran a closed loop" in readme(study, Readings((reading(),)))


def test_errors_of_an_attempt_that_does_not_count_are_told_all_the_same(reading, study):
    lost = reading(failed=3, errors={"reset": 3}, socket_errors={"closing: timeout": 1})
    first = replace(lost, gates=reading(foreign=True).gates)
    page = readme(study, Readings((first, reading(attempt=2))))
    assert "| locust: errors | 3 reset, 1 closing: timeout of 2,003 | – |" in page
    assert (
        "- round 1, one worker, 32 x 20000, close, locust: others were at work; errors: 3 reset"
        in (page)
    )
    assert "- `reset`: the connection was cut off" in page


RECORDED = Path(__file__).resolve().parent.parent / "tools" / "recorded"


@pytest.mark.parametrize(
    ("tool", "recorded", "failed"),
    [("ab", "reset.ab", "1,790 of 2,000"), ("wrk", "ok.wrk-close", "0 of 120,990")],
)
def test_failures_are_requests_and_not_their_kinds(reading, study, tool, recorded, failed):
    """ab counts one under three kinds, and wrk's read errors are no lost replies."""
    job = Job("", clients=10, requests=200, seconds=1, keepalive=False)
    outcome = TOOLS[tool].parsed((RECORDED / f"{recorded}.txt").read_text(), job)
    rounds = [
        replace(one, outcome=outcome)
        for column in (ONE, NGINX)
        for one in rounds_of(reading, column, 1_000, tool)
    ]
    page = readme(replace(study, rounds=10, tools=(tool,)), Readings(tuple(rounds)))
    assert page.count(f"| {failed} |") == 2


def test_few_rounds_conclude_nothing(reading, study):
    readings = Readings((reading(), reading(column=NGINX.name, ok=900)))
    assert "What to conclude" not in readme(study, readings)


def test_page_without_readings_claims_nothing(study):
    page = readme(study, Readings(()))
    assert "Nothing was measured that counts" in page
    assert "every reply came" not in page


def test_chart_shows_what_was_measured(reading, study):
    drawings = charts(study, Readings((reading(),)))
    assert [one.name for one in drawings] == ["rate", "per-cpu"]
    assert isinstance(drawings[0].chart, VConcatChart)
    assert "one worker, locust" in json.dumps(drawings[0].spec)
    assert charts(study, Readings(())) == []


def test_kernels_counters_are_read_by_protocol():
    text = "Tcp: ActiveOpens RetransSegs\nTcp: 12 3\nUdp: InDatagrams\nUdp: 7\n"
    assert kernel.parsed(text) == {
        "Tcp": {"ActiveOpens": 12, "RetransSegs": 3},
        "Udp": {"InDatagrams": 7},
    }


def test_kernel_counts_connections():
    before = kernel.tcp()
    assert kernel.tcp().since(before).opened >= 0
    assert kernel.Tcp(5, 2, 1).since(kernel.Tcp(3, 2, 0)) == kernel.Tcp(2, 0, 1)


def test_cell_is_named_for_what_it_asks():
    assert HttpCell(32, 20_000, keepalive=False).name == "32 x 20000, close"
    assert EchoCell(15, 400, detail=True).name == "15 via 400, detailed"


def test_share_of_the_study_keeps_the_cell_and_says_what_was_sent():
    tenth = HttpCell(32, 20_000, keepalive=False, share=0.1)
    assert tenth.sent == 2_000
    assert tenth.name == HttpCell(32, 20_000, keepalive=False).name
    assert heading(tenth).startswith("32 clients, 2,000 of the study's 20,000 requests")
    assert HttpCell(100, 0, keepalive=True, only="wrk", share=0.1).sent == 0
