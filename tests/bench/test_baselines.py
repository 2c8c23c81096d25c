"""``bench baselines`` without starting anything: what is read, judged, concluded and written."""

from dataclasses import replace

import pytest

from bench import reference
from bench.baselines import claims, measuring, rounds
from bench.baselines.chart import charts
from bench.baselines.claims import Claim, conclusions
from bench.baselines.generators import Count, Unreadable, ab_count, wrk_command, wrk_count
from bench.baselines.ladder import ONE_HOP, STOCK, TWIN
from bench.baselines.measuring import Seen
from bench.baselines.page import readme
from bench.baselines.results import Cell, Results, figure, ratio, read, short, write
from bench.baselines.rows import ALONE, ONE_CLIENT, chosen, rows
from bench.baselines.serving import nginx_conf
from bench.baselines.sites import Front
from bench.errors import BadInput
from bench.provenance import Pinning
from bench.records import Gate, Machine, Usage
from bench.theme import LIGHT, svg

WRK = """Running 2s test @ http://127.0.0.1:8008/
  1000 requests in 2.00s, 145.51KB read
{"elapsed_us": 2000000, "requests": 1000, "bytes": 149000, "connect": 0, "read": 1, "write": 0, \
"status": 3, "timeout": 2, "p50_us": 640, "p99_us": 1250}
"""
AB = """Concurrency Level:      64
Time taken for tests:   2.500 seconds
Complete requests:      5000
Failed requests:        4
   (Connect: 0, Receive: 0, Length: 4, Exceptions: 0)
Non-2xx responses:      6
Requests per second:    2000.00 [#/sec] (mean)
Percentage of the requests served within a certain time (ms)
  50%     31
  99%     44
"""


def test_wrk_counts_replies_that_hang_or_are_errors_as_failed():
    count = wrk_count(WRK)
    assert (count.requests, count.failed, count.ok) == (1003, 6, 997)
    assert count.rps == 997 / 2
    assert (count.p50_ms, count.p99_ms, count.received_bytes) == (0.64, 1.25, 149000)


def test_ab_counts_short_replies_and_error_statuses_as_failed():
    count = ab_count(AB)
    assert (count.requests, count.failed, count.elapsed_s) == (5000, 10, 2.5)
    assert (count.p50_ms, count.p99_ms) == (31, 44)


@pytest.mark.parametrize("parsed", [wrk_count, ab_count])
@pytest.mark.parametrize("printed", ["", "unable to connect to 127.0.0.1:8008 Connection refused"])
def test_generator_that_printed_no_result_is_unreadable(parsed, printed):
    with pytest.raises(Unreadable, match="printed no result"):
        parsed(printed)


def test_wrk_is_asked_for_as_many_clients_as_the_row_has():
    command = wrk_command("http://127.0.0.1:8008/", 64, 4, "127.0.1.1")
    assert command[command.index("--connections") + 1] == "64"


def test_every_figure_of_the_talk_stands_beside_a_row():
    beside = sorted(row.then_rps for row in rows() if row.then_rps is not None)
    published = [one for one in reference.framework_baseline() if one.row != "nginx only"]
    assert beside == sorted(one.requests_rps for one in published)


def test_rows_and_sites_have_names_of_their_own():
    everything = rows()
    names = [row.name for row in everything]
    assert len(set(names)) == len(names)
    by_name = {row.site.name: row.site for row in everything}
    assert all(by_name[row.site.name] == row.site for row in everything)


def test_every_row_asks_a_port_that_its_site_listens_on():
    assert all(row.port in row.site.ports for row in rows())


@pytest.mark.parametrize(
    ("patterns", "count"),
    [((), len(rows())), (("work",), 4), (("uwsgi-*",), 6), (("work", "bare"), 5)],
)
def test_rows_are_chosen_by_table_by_name_and_by_pattern(patterns, count):
    assert len(chosen(patterns)) == count


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"patterns": ["django*nginx"]}, "--rows django.nginx"),
        ({"generators": ["weighttp"]}, "--generator weighttp: it is one of wrk, ab"),
        ({"rounds": 0}, "--rounds 0"),
        ({"seconds": 1}, "--seconds 1 is too short"),
        ({"minutes": -1}, "--minutes -1"),
    ],
)
def test_plan_refuses_what_cannot_be_measured(asked, said):
    with pytest.raises(BadInput, match=said):
        rounds.plan("quick", seed=1, **asked)


def test_order_is_shuffled_by_round_and_the_same_for_a_seed(monkeypatch):
    monkeypatch.setattr(rounds.serving, "missing", lambda site: None)
    plan = rounds.plan("full", seed=7)
    orders = [[site.name for site, _ in plan.order(number)] for number in (1, 2, 1)]
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    measured = [row.name for _, found in plan.order(1) for row in found]
    assert sorted(measured) == sorted(row.name for row in rows())


def test_row_without_its_toolchain_is_skipped_with_the_remedy(monkeypatch):
    monkeypatch.setattr(
        rounds.serving, "missing", lambda site: "go is missing" if site.name == "go" else None
    )
    plan = rounds.plan("quick", patterns=["go", "node"], seed=1)
    assert plan.skipped == {"go": "go is missing"}
    assert [row.name for row in plan.rows] == ["node"]


def test_site_of_two_processors_shares_the_generators_where_there_is_no_third():
    assert measuring.server_cpus(Pinning((1, 2), (0,)), 2) == (1, 2)
    assert measuring.server_cpus(Pinning((1, 2), (0,)), 1) == (1,)
    assert len(measuring.server_cpus(Pinning((1,), (0,)), 2)) >= 2
    assert measuring.server_cpus(Pinning(None, None), 1) is None


@pytest.mark.parametrize("protocol", ["none", "http", "fastcgi", "uwsgi"])
def test_nginx_has_a_backlog_for_every_client_in_every_protocol(protocol):
    text = nginx_conf(Front(protocol, None if protocol == "none" else "unix:/x"), as_root=False)
    listening = [line for line in text.splitlines() if "listen " in line]
    assert len(listening) == (2 if protocol == "http" else 1)
    assert all("backlog=2048" in line for line in listening)
    assert "user root" not in text


def machine(foreign=0.0):
    return Machine(wall_s=2.0, busy_cores=1.5, foreign_cores=foreign, steal_cores=0.0)


def usage(user_s=1.5, system_s=0.3):
    return Usage(user_s, system_s, 1.0, None, None, 2, 0.95)


@pytest.mark.parametrize(
    ("changed", "gate"),
    [
        ({"count": Count(10_000, 11, 2.0, 1, 2, 1_490_000)}, "failures"),
        ({"count": Count(90, 0, 2.0, 1, 2, 13_410)}, "enough replies"),
        ({"count": Count(10_000, 0, 2.0, 1, 2, 1_400_000)}, "wrong replies"),
        ({"overflows": 1}, "dropped connections"),
        ({"driver": usage(1.9, 0.0)}, "generator CPU"),
        ({"machine": machine(foreign=0.05)}, "foreign CPU"),
        ({"machine": replace(machine(), steal_cores=0.5)}, "steal"),
    ],
)
def test_gate_fires(changed, gate):
    row = next(row for row in rows() if row.name == STOCK)
    flawless = Seen(Count(10_000, 0, 2.0, 1, 2, 1_490_000), usage(), usage(0.5, 0.5), machine(), 0)
    assert all(one.ok for one in measuring._gates(flawless, 149, row, 1))
    missed = measuring._gates(replace(flawless, **changed), 149, row, 1)
    assert [one.name for one in missed if not one.ok] == [gate]


def cell(row, number, rps, cpu_us, *, generator="wrk", valid=True):
    """A cell whose server spent ``cpu_us`` on each reply, four fifths of them in user mode."""
    spent_s = rps * 2.0 * cpu_us / 1e6
    return Cell(
        row=row,
        generator=generator,
        round=number,
        attempt=1,
        started="2026-11-21T12:00:00+00:00",
        count=Count(int(rps * 2), 0, 2.0, 1.0, 2.0),
        server=usage(spent_s * 0.8, spent_s * 0.2),
        driver=usage(0.1, 0.1),
        machine=machine(),
        gates=(Gate("steal", valid, 0.5, 0.01, "cores", "" if valid else "others worked"),),
    )


def results(kind="full", count=10, **costs):
    """Results in which each row of ``costs`` has its CPU cost, with a little noise by round."""
    noise = [1 + 0.01 * ((number * 7) % 5 - 2) for number in range(count)]
    cells = tuple(
        cell(row, number + 1, 1e6 / us, us * noise[number])
        for number in range(count)
        for row, us in costs.items()
    )
    return Results(
        started="2026-11-21T12:00:00+00:00",
        finished="2026-11-21T13:00:00+00:00",
        kind=kind,
        rounds=count,
        seconds={"wrk": 4},
        rows=tuple(costs),
        cells=cells,
        provenance={
            "commit": "0123abc",
            "command": ["python", "-m", "bench", "baselines"],
            "machine": {"cpu": "Imaginary CPU", "usable_processors": 2, "kernel": "Linux 6"},
            "versions": {"python": "3.11.7"},
            "pinning": {"server": "1", "generator": "0"},
        },
        hops={STOCK: {"hops": 16, "threads": 2}, ONE_HOP: {"hops": 1, "threads": 0}},
    )


COSTS = {"nginx-64": 10.0, "bare": 30.0, STOCK: 1500.0, ONE_HOP: 250.0, "django": 200.0}


def test_results_come_back_from_json_as_they_were(tmp_path):
    found = results(**COSTS)
    write(found, tmp_path)
    assert read(tmp_path) == found


def test_report_is_written_again_from_the_file(tmp_path, reported):
    write(results(**COSTS), tmp_path)
    assert '<img alt="Where a Django request over ASGI spends its time.' in reported(tmp_path)
    assert (tmp_path / "ladder-dark.svg").is_file()


def test_folder_without_results_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"no baselines\.json"):
        read(tmp_path)


def test_cpu_is_for_each_reply_and_split_into_user_and_system():
    one = cell(STOCK, 1, rps=1000.0, cpu_us=500.0)
    assert one.user_us == pytest.approx(400)
    assert one.system_us == pytest.approx(100)


def test_cell_that_failed_a_gate_enters_no_figure():
    found = results(**COSTS)
    spoilt = cell(STOCK, 3, rps=1.0, cpu_us=9_000.0, valid=False)
    kept = tuple(one for one in found.cells if (one.row, one.round) != (STOCK, 3))
    spread = figure(replace(found, cells=(*kept, spoilt)), STOCK, "rps")
    assert (spread.rounds, spread.low) == (9, pytest.approx(1e6 / 1500, rel=1e-3))


def test_ratio_is_taken_within_rounds_and_has_an_interval_only_in_a_full_campaign():
    full = ratio(results(**COSTS), ONE_HOP, STOCK, "cpu_us")
    assert full.interval.low == pytest.approx(
        1 / 6, rel=1e-3
    )  # the noise is that of the round: it cancels
    assert full.interval.high == pytest.approx(1 / 6, rel=1e-3)
    assert ratio(results("quick", 3, **COSTS), ONE_HOP, STOCK, "cpu_us").interval is None
    assert ratio(results(**COSTS), "flask", STOCK, "cpu_us") is None


def test_claim_says_what_follows_only_where_the_interval_does():
    claim = Claim(ONE_HOP, STOCK, "cpu_us", "It takes {} times the CPU", "So use it.", 0.5)
    costs = ((250.0, "**0.167**", True), (1200.0, "**0.800**", False), (3000.0, "**2.00**", False))
    for cost, said, follows in costs:
        measured = ratio(results(**{**COSTS, ONE_HOP: cost}), ONE_HOP, STOCK, "cpu_us")
        sentence = claims.sentence(claim, measured)
        assert said in sentence
        assert ("So use it." in sentence) is follows


def test_claim_whose_interval_contains_1_tells_no_difference():
    found = results(**COSTS)
    shaken = [
        replace(one, server=usage(one.server.cpu_user_s * (1.1 if one.round % 2 else 0.9), 0.0))
        if one.row == STOCK
        else one
        for one in (*found.cells, *(replace(c, row="again") for c in found.cells if c.row == STOCK))
    ]
    measured = ratio(replace(found, cells=tuple(shaken)), "again", STOCK, "user_us")
    claim = Claim("again", STOCK, "user_us", "It takes {} times the CPU", "So use it.")
    assert measured.interval.contains(1.0)
    assert claims.sentence(claim, measured).endswith("no difference can be told.")


def test_claim_that_ends_no_further_from_1_than_the_twins_tells_no_difference():
    costs = COSTS | {"stock-async": 1350.0}
    noisy = [
        replace(one, server=usage(one.server.cpu_user_s * (1.3 if one.round % 2 else 0.8), 0.0))
        for one in results(**{TWIN: 1500.0}).cells
    ]
    found = results(**costs)
    (alone,) = [one for one in conclusions(found)["Django over ASGI"] if "An async view" in one]
    beside = replace(found, cells=(*found.cells, *noisy))
    (held,) = [one for one in conclusions(beside)["Django over ASGI"] if "An async view" in one]
    assert not alone.endswith("no difference can be told.")
    assert held.endswith("no difference can be told.")


def test_row_may_lack_one_round_in_ten():
    found = results(**COSTS)
    for lacking, short_ in (((4,), False), ((4, 7), True)):
        cells = [
            replace(one, gates=(Gate("steal", False, 0.5, 0.01, "cores", "others worked"),))
            if one.row == STOCK and one.round in lacking
            else one
            for one in found.cells
        ]
        spoilt = replace(found, cells=tuple(cells))
        assert bool(short(spoilt)) is short_
        assert ("do not rely on them" in readme(spoilt, [])) is short_
        assert ("times the CPU of a bare ASGI callable" in readme(spoilt, [])) is not short_
    assert short(spoilt) == {(STOCK, "wrk"): "8 of 10 rounds: others worked"}


def test_page_of_ab_alone_has_its_figures_and_no_column_for_another():
    found = results(**COSTS)
    cells = tuple(replace(one, generator="ab") for one in found.cells)
    text = readme(replace(found, cells=cells, seconds={"ab": 2}), [])
    (line,) = [line for line in text.splitlines() if line.startswith("| Django |")]
    assert "0.050 (95 % interval 0.050 to 0.050)" in line
    assert "ab, requests/s" not in text


def test_page_of_two_generators_has_a_column_for_the_second():
    found = results(**COSTS)
    seconds = tuple(
        replace(one, generator="ab", count=Count(4_000, 0, 2.0, 1.0, 2.0)) for one in found.cells
    )
    text = readme(replace(found, cells=(*found.cells, *seconds), seconds={"wrk": 4, "ab": 2}), [])
    (line,) = [line for line in text.splitlines() if line.startswith("| Django |")]
    assert line.endswith("| 2,000 (2,000 to 2,000) | 10/10 |")
    assert "| ab, requests/s | rounds |" in text


def test_what_pays_is_said_of_each_server_where_it_does():
    costs = {**COSTS, "daphne-stock-sync": 2000.0, "daphne-one_hop": 400.0}
    said = conclusions(results(**costs))["Other ASGI servers"]
    assert said[-1].endswith("It pays on this server too.")


def test_quick_campaign_concludes_nothing():
    text = readme(results("quick", 3, **COSTS), [])
    assert "Nothing yet: this was a quick campaign" in text
    said = [one for group in conclusions(results("quick", 3, **COSTS)).values() for one in group]
    assert len(said) >= 3
    assert not any(claim.so and claim.so in one for claim in claims.LADDER for one in said)


def test_page_has_the_talks_figure_and_its_share_of_nginx_alone_beside_ours():
    text = readme(results(**COSTS), [])
    (line,) = [line for line in text.splitlines() if line.startswith("| Django |")]
    assert "| 321 |" in line
    assert "| 0.085 |" in line  # 321 of 3,780
    assert "0.050 (95 % interval 0.050 to 0.050)" in line  # 5,000 of 100,000


def idle(found, row):
    """``found`` with a server of ``row`` that its generator kept busy for half of the time only."""
    spare = Gate("capacity", False, 50.0, 75.0, "%", "time to spare", advisory=True)
    return replace(
        found,
        cells=tuple(
            replace(one, count=Count(one.count.requests // 2, 0, 2.0, 1.0, 0.0), gates=(spare,))
            if one.row == row
            else one
            for one in found.cells
        ),
    )


def test_share_of_nginx_alone_is_of_what_it_can_answer_where_no_generator_keeps_it_busy():
    found = results(**COSTS)
    halved = tuple(
        replace(one, server=usage(one.server.cpu_user_s / 2, one.server.cpu_system_s / 2))
        if one.row == ALONE
        else one
        for one in found.cells
    )
    text = readme(idle(replace(found, cells=halved), ALONE), [])
    (django,) = [line for line in text.splitlines() if line.startswith("| Django |")]
    assert "0.050 (95 % interval 0.050 to 0.050)" in django
    assert "rounds or more of: nginx alone, 64 clients. Those rates are what the clients" in text
    (alone,) = [line for line in text.splitlines() if line.startswith("| nginx alone, 64")]
    assert "| < 1 |" in alone


def test_rates_are_compared_only_where_both_servers_were_busy():
    found = results(**{ONE_CLIENT: 20.0, **COSTS, "flask": 150.0})
    assert set(conclusions(found)) >= {"Concurrency", "Frameworks"}
    # One client keeps no server busy, and what it gets is the question.
    assert "Concurrency" in conclusions(idle(found, ONE_CLIENT))
    assert "Concurrency" not in conclusions(idle(found, ALONE))
    assert "Frameworks" not in conclusions(idle(found, "flask"))


def test_page_names_what_was_skipped_discarded_and_failed():
    found = results(**COSTS)
    failed = Cell("flask", "wrk", 1, 1, "2026-11-21T12:00:00+00:00", failure="it did not start")
    spoilt = cell("bare", 1, 1000.0, 30.0, valid=False)
    text = readme(
        replace(found, cells=(*found.cells, failed, spoilt), skipped={"go": "go is missing"}), []
    )
    assert "- go: skipped, go is missing" in text
    assert "- flask, wrk, round 1, attempt 1: it did not start" in text
    assert "- bare, wrk, round 1, attempt 1: others worked" in text


def test_row_without_a_valid_round_is_a_gap_and_no_zero():
    found = results(**COSTS)
    text = readme(replace(found, rows=(*found.rows, "flask")), [])
    (line,) = [line for line in text.splitlines() if line.startswith("| Flask |")]
    assert "| – | 0.187 | – | 708 |" in line
    assert line.endswith("| 0/10 |")


def test_ladder_is_drawn_in_user_and_system_time_for_each_rung():
    drawn = {one.name: one for one in charts(results(**COSTS))}
    assert set(drawn) == {"ladder", "then-and-now", "concurrency"}
    picture = svg(drawn["ladder"], LIGHT)
    for said in ("1,500", "250", "OneHopHandler"):
        assert said in picture
    assert "null" not in picture


def test_nothing_measured_draws_nothing():
    assert charts(replace(results(**COSTS), cells=())) == ()
