"""A published report: every figure it must state, and nothing that a log line could inject."""

import json
import re
from dataclasses import replace

import pytest

from bench.charts import charts
from bench.errors import BadInput
from bench.report import fenced, flat, inline, page, publish, readme, title_of
from bench.results import read_results


@pytest.fixture(scope="module")
def published(full, tmp_path_factory):
    folder = full.write(tmp_path_factory.mktemp("results") / "campaign")
    assert publish(folder) == folder / "index.html"
    return folder


@pytest.fixture(scope="module")
def text(published):
    return (published / "README.md").read_text()


@pytest.fixture(scope="module")
def html(published):
    return (published / "index.html").read_text()


@pytest.mark.parametrize(
    ("name", "about"),
    [("2026-11-21", ""), ("20261121-120000", ""), ("2026-11-21-one-hop", ": one hop")],
)
def test_title_says_what_a_campaign_with_a_name_is_about(full, name, about):
    campaign = replace(full.campaign, name=name)
    assert title_of(campaign) == f"Channels load test, 2026-11-21{about}"


def test_readme_states_environment_and_method_before_any_figure(text):
    first_figure = text.index("| p50 ms |")
    for stated in ("2026-11-21", "0123abc", "5.2.19", "Imaginary CPU 3000", "## Method"):
        assert text.index(stated) < first_figure


def test_readme_has_every_configuration_inline(full, text):
    for files in full.campaign.configurations.values():
        for name, content in files.items():
            assert f"`{name}`" in text
            assert content.strip() in text


def test_readme_has_the_sections_of_the_report_of_2016(text):
    headings = re.findall(r"^## (.*)", text, flags=re.MULTILINE)
    assert headings == [
        "What was measured, and on what",
        "Method",
        "Setups",
        "Latency: GET / at 300/s",
        "Throughput: GET /, 10 clients",
        "Relay latency: GET /relay/ at 300/s",
        "Relay: GET /relay/, 10 clients",
        "Capacity: GET /, highest rate",
        "Charts",
        "The figures of 2016 beside these",
        "How punctual the driver was",
        "Conclusions",
        "What was left out",
        "Raw data",
    ]


def test_readme_shows_every_picture_that_was_drawn(published, text):
    sources = re.findall(r'(?:srcset|src)="(charts/[^"]+)"', text)
    assert len(sources) == 16
    assert all((published / source).is_file() for source in sources)


def test_readme_tables_have_the_same_number_of_cells_in_every_row(text):
    outside_code = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for table in re.findall(r"(?:^\|.*\n)+", outside_code, flags=re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1, table


def test_readme_sets_2016_beside_today_with_a_gap_for_ipc(full, text):
    p99 = full.summary.cell("daphne-redis", "latency").median("p99_ms")
    assert f"| daphne 0.14.3 + asgi_redis 0.14.0 | 99 % | 118 ms | {p99:.2f} ms |" in text
    assert "| daphne 0.14.3 + asgi_ipc 1.1.0 | 99 % | – |" in text
    assert "context and not a comparison of equals" in text


def test_readme_publishes_discards_and_failures(text):
    assert "| daphne-redis | relay | 2 | 1 | foreign CPU | other processes used 12 %" in text
    assert "daphne-ipc, relay, round 3, attempt 1 failed:" in text


def test_readme_fences_a_hostile_log(make, text):
    assert f"````\n{make.hostile}\n````" in text
    assert "<script>" not in text.replace(make.hostile, "")


def test_page_escapes_a_hostile_log(html):
    assert "&lt;script&gt;alert" in html
    assert "<script>alert" not in html
    assert "<img src=x" not in html


def test_page_escapes_hostile_names_and_reasons(quick, make):
    first = quick.samples[0]
    spoilt = replace(first, failure="</script><b>x</b>", load=None, log_tail=None)
    summary = make.canned(quick.campaign, (spoilt, *quick.samples[1:])).summary
    drawn = page(summary, ())
    assert "<b>x</b>" not in drawn
    assert "&lt;b&gt;x&lt;/b&gt;" in drawn
    assert "<b>x</b>" not in readme(summary, ())


def test_page_reaches_for_nothing_outside_itself(html):
    markup = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href)=\"(?!data:|raw/)[^\"]*\"", markup)
    assert "default-src 'none'" in html


def test_page_carries_the_chart_library_once(html):
    assert html.count("<script") == html.count("</script>") == 5


def test_page_carries_every_figure_of_every_round(full, html):
    (embedded,) = re.findall(r'id="figures">(.*?)</script>', html, flags=re.DOTALL)
    figures = json.loads(embedded)
    cell = next(c for c in figures["cells"] if (c["arm"], c["test"]) == ("daphne-ipc", "relay"))
    spread = full.summary.cell("daphne-ipc", "relay").spreads["rps"]
    assert cell["rounds"]["rps"] == {str(key): value for key, value in spread.rounds.items()}
    assert cell["failed"] == 1


def test_page_warns_where_the_control_differs_from_itself(make):
    campaign = make.campaign(rounds=10, tests=("latency",))
    samples = make.samples(campaign, duration_s=2, drift={"gunicorn (again)": 1.3})
    summary = make.canned(campaign, tuple(samples)).summary
    assert "The control differs from itself" in page(summary, ())
    assert "> **The control differs from itself" in readme(summary, ())


def test_quick_report_calls_itself_quick_and_has_no_interval(quick):
    text = readme(quick.summary, charts(quick.summary))
    assert "A quick campaign of 3 rounds" in text
    assert "ratio (range)" in text
    assert "ratio (95 % interval)" not in text
    assert "Nothing: every measurement passed every gate." in text


def test_report_without_a_valid_sample_says_what_failed(make, tmp_path):
    campaign = make.campaign("quick", rounds=1, tests=("latency",))
    broken = tuple(make.failed(s) for s in make.samples(campaign, duration_s=2))
    folder = make.canned(campaign, broken).write(tmp_path / "campaign")
    publish(folder)
    text = (folder / "README.md").read_text()
    assert "| daphne-ipc | 0/1, 1 failed |" in text
    assert "daphne exited with 1 before it was ready" in text


def test_report_again_leaves_no_picture_of_an_earlier_one(undrawn, tmp_path):
    folder = undrawn.write(tmp_path / "campaign")
    (folder / "charts").mkdir()
    (folder / "charts" / "load.png").write_bytes(b"old")
    publish(folder)
    assert not (folder / "charts" / "load.png").exists()


def test_results_survive_their_folder(full, published):
    results = read_results(published)
    assert results.campaign == full.campaign
    assert sorted(s.file_name for s in results.samples) == sorted(s.file_name for s in full.samples)
    assert results.summary.ratio("daphne-ipc", "relay", "rps") == full.summary.ratio(
        "daphne-ipc", "relay", "rps"
    )


def test_folder_without_a_campaign_is_refused(tmp_path):
    with pytest.raises(BadInput, match="is not a results folder"):
        read_results(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '{"name": "x"}', '{"tests": []}'])
def test_damaged_campaign_is_refused(quick, tmp_path, content):
    folder = quick.write(tmp_path / "campaign")
    (folder / "campaign.json").write_text(content)
    with pytest.raises(BadInput, match="damaged"):
        read_results(folder)


@pytest.mark.parametrize("content", ["", "{}", '{"load": {}}'])
def test_damaged_sample_is_refused(quick, tmp_path, content):
    folder = quick.write(tmp_path / "campaign")
    next((folder / "raw").iterdir()).write_text(content)
    with pytest.raises(BadInput, match="damaged"):
        read_results(folder)


def test_campaign_without_samples_is_refused(make, tmp_path):
    folder = make.canned(make.campaign(), ()).write(tmp_path / "campaign")
    with pytest.raises(BadInput, match="holds no samples"):
        read_results(folder)


def test_provenance_is_flattened_with_gaps_named():
    found = dict(flat({"a": {"b": 1, "c": None}, "d": ["x", "y"]}))
    assert found == {"a.b": "1", "a.c": "not known", "d": "x y"}


def test_fence_is_longer_than_any_run_of_backticks():
    assert fenced("a ```` b\n", "ini") == "`````ini\na ```` b\n`````"


def test_inline_text_means_nothing_to_markdown():
    assert inline("<b> | `x` *y*\n[z]") == "&lt;b> \\| \\`x\\` \\*y\\* \\[z\\]"
