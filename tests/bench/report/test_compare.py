"""What changed between two campaigns."""

import io
from dataclasses import replace

import pytest
from click.testing import CliRunner
from rich.console import Console

from bench.cli import main
from bench.compare import compare, comparison_table


@pytest.fixture(scope="module")
def before(make):
    campaign = make.campaign(rounds=8, tests=("latency", "throughput"))
    return make.canned(campaign, tuple(make.samples(campaign, seed=1, duration_s=3)))


@pytest.fixture(scope="module")
def after(make):
    """An upgrade of Channels that made the IPC layer 20 % slower."""
    campaign = make.campaign(rounds=8, tests=("latency", "throughput"))
    versions = {**campaign.provenance["versions"], "channels": "4.4.0", "Django": "5.2.20"}
    upgraded = replace(
        campaign, name="after", provenance={**campaign.provenance, "versions": versions}
    )
    samples = make.samples(upgraded, seed=2, duration_s=3, drift={"daphne-ipc": 1.2})
    return make.canned(upgraded, tuple(samples))


def change(comparison, arm, test, figure):
    (found,) = [
        one
        for one in comparison.changes
        if (one.arm, one.test, one.figure.name) == (arm, test, figure)
    ]
    return found


def test_slower_arm_is_found_with_its_interval(before, after):
    found = change(compare(before.summary, after.summary), "daphne-ipc", "latency", "p50_ms")
    assert found.interval.contains(1.2)
    assert not found.interval.contains(1.0)
    assert found.relative.contains(1.2)
    assert found.interval.confidence >= 0.95


def test_unchanged_arm_cannot_be_told_apart(before, after):
    found = change(compare(before.summary, after.summary), "daphne-redis", "throughput", "rps")
    assert found.interval.contains(1.0)


def test_change_within_what_the_a_a_pair_differs_by_is_marked_as_none(before, after):
    coarse = replace(after.summary, reach={**after.summary.reach, ("latency", "p50_ms"): 2.0})
    for summary, marked in ((after.summary, False), (coarse, True)):
        found = compare(before.summary, summary)
        kept = change(found, "daphne-ipc", "latency", "p50_ms")
        table = comparison_table(replace(found, changes=(kept,)))
        console = Console(width=140, record=True, file=io.StringIO())
        console.print(table)
        assert ("≈" in console.export_text()) is marked


def test_control_has_no_change_relative_to_itself(before, after):
    assert (
        change(compare(before.summary, after.summary), "gunicorn", "latency", "p50_ms").relative
        is None
    )


def test_twin_is_left_out(before, after):
    arms = {one.arm for one in compare(before.summary, after.summary).changes}
    assert arms == {"gunicorn", "daphne-redis", "daphne-ipc"}


def test_versions_that_differ_are_named_and_others_are_not(before, after):
    found = compare(before.summary, after.summary)
    assert [(one.name, one.before, one.after) for one in found.versions] == [
        ("Django", "5.2.19", "5.2.20"),
        ("channels", None, "4.4.0"),
    ]
    assert found.machine == ()
    assert found.warnings == ()


def test_other_machine_is_warned_of(before, after):
    provenance = {**after.campaign.provenance, "machine": {"cpu": "Other CPU", "cores": 2}}
    moved = replace(after, campaign=replace(after.campaign, provenance=provenance))
    (warning,) = compare(before.summary, moved.summary).warnings
    assert warning.startswith("the machines differ (cpu, memory_gb, kernel)")


def test_other_kind_control_and_a_twin_that_differs_are_warned_of(before, make):
    campaign = replace(make.campaign(rounds=8, tests=("latency",)), name="drifting")
    drifted = make.samples(campaign, duration_s=3, drift={"gunicorn (again)": 1.3})
    summary = make.canned(campaign, tuple(drifted)).summary
    assert (
        "in drifting the control differs from itself" in compare(before.summary, summary).warnings
    )
    other = replace(before.campaign, kind="quick", control="daphne-ipc", twin=None)
    warnings = compare(before.summary, make.canned(other, before.samples).summary).warnings
    assert any("the controls differ" in one for one in warnings)
    assert any("one campaign is quick" in one for one in warnings)


def test_test_that_one_side_lacks_is_a_gap(before, quick):
    found = change(compare(before.summary, quick.summary), "daphne-ipc", "relay", "rps")
    assert found.before is None
    assert (found.interval, found.relative, found.estimate) == (None, None, None)


def test_too_few_rounds_give_a_ratio_without_an_interval(quick):
    found = change(compare(quick.summary, quick.summary), "daphne-ipc", "latency", "p50_ms")
    assert found.interval is None
    assert found.estimate == 1


def test_estimate_is_the_centre_of_the_interval(before, after):
    found = change(compare(before.summary, after.summary), "daphne-ipc", "latency", "p50_ms")
    assert found.estimate == found.interval.estimate


def test_table_fits_a_hundred_columns(before, after):
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(comparison_table(compare(before.summary, after.summary)))
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= 100
    assert not any("…" in line for line in lines)
    (line,) = [one for one in lines if one.startswith("daphne-ipc") and "p50 ms" in one]
    assert "1.2" in line or "1.1" in line
    assert sum("≈" in one for one in lines) >= 4


def test_command_names_versions_and_warnings(before, after, quick, tmp_path):
    folders = [one.write(tmp_path / str(i)) for i, one in enumerate((before, after, quick))]
    shown = CliRunner().invoke(main, ["compare", str(folders[0]), str(folders[1])])
    assert shown.exit_code == 0
    assert "Versions: Django 5.2.19 → 5.2.20, channels – → 4.4.0" in shown.output
    again = CliRunner().invoke(main, ["compare", str(folders[0]), str(folders[2])])
    assert "The versions are the same." in again.output
    assert "Warning: one campaign is quick" in again.output
    alone = CliRunner().invoke(main, ["compare", str(folders[2]), str(folders[2])])
    assert "(no" in alone.output


def test_command_refuses_a_folder_without_results(before, tmp_path):
    folder = before.write(tmp_path / "before")
    shown = CliRunner().invoke(main, ["compare", str(folder), str(tmp_path)])
    assert shown.exit_code == 2
    assert shown.output.strip() == (
        f"Error: {tmp_path} is not a results folder: it has no campaign.json"
    )


def test_report_command_publishes_and_prints_the_verdict(undrawn, tmp_path):
    folder = undrawn.write(tmp_path / "campaign")
    shown = CliRunner().invoke(main, ["report", str(folder)])
    assert shown.exit_code == 0
    assert "A quick campaign of 1 round:" in shown.output
    assert str(folder / "index.html") in shown.output.replace("\n", "")
    assert (folder / "index.html").is_file()


def test_report_command_refuses_a_folder_without_results(tmp_path):
    shown = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert shown.exit_code == 2
    assert "is not a results folder" in shown.output
