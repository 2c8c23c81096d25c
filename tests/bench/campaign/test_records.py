"""What is written is read back the same, and a reader never meets half a file."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from bench import records
from bench.errors import BadInput
from bench.records import Campaign, Gate, Sample, Step

GATE = Gate("steal", ok=False, measured=0.1, limit=0.02, unit="cores", reason="stolen")
ADVICE = Gate("capacity", ok=False, measured=40.0, limit=75.0, unit="%", reason="", advisory=True)


def test_sample_is_read_back_as_it_was_written(
    make_sample: Callable[..., Sample], make_load: Callable[..., records.Load], tmp_path: Path
) -> None:
    step = Step(0.0, 0.5, 4, None, 100, 0, 200.0, 1.0, 2.0, None)
    load = make_load(steps=(step,), held_rps=190.0, failed_rps=210.0, warnings=("slow",))
    sample = make_sample(load=load, gates=(GATE, ADVICE), command=("python", "-m", "locust"))
    records.write(sample, tmp_path)
    assert records.read(tmp_path) == [sample]


def test_failed_sample_is_read_back_with_nothing_measured(
    make_sample: Callable[..., Sample], tmp_path: Path
) -> None:
    failed = make_sample(
        load=None, server=None, generator=None, machine=None, failure="no", log_tail="last words"
    )
    records.write(failed, tmp_path)
    assert records.read(tmp_path) == [failed]


def test_sample_with_a_missed_gate_does_not_count(make_sample: Callable[..., Sample]) -> None:
    assert make_sample().valid
    assert not make_sample(gates=(GATE,)).valid
    assert not make_sample(failure="no").valid


def test_sample_with_missed_advice_counts(make_sample: Callable[..., Sample]) -> None:
    assert make_sample(gates=(ADVICE,)).valid


def test_samples_of_one_cell_have_names_of_their_own(make_sample: Callable[..., Sample]) -> None:
    names = {
        make_sample(arm=arm, round=round_, attempt=attempt, test=test).file_name
        for arm in ("gunicorn", "gunicorn (again)")
        for test in ("latency", "throughput")
        for round_ in (1, 2)
        for attempt in (1, 2)
    }
    assert len(names) == 16
    assert "01-latency-gunicorn_again-2.json" in names


def test_write_leaves_no_half_file(make_sample: Callable[..., Sample], tmp_path: Path) -> None:
    path = records.write(make_sample(), tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_load_that_is_not_one_is_refused() -> None:
    with pytest.raises(TypeError):
        records.load_from({"buckets": [], "requests": 5})


def test_campaign_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    campaign = Campaign(
        name="20261121-120000",
        kind="quick",
        started="2026-11-21T12:00:00+00:00",
        finished=None,
        rounds=3,
        control="gunicorn",
        twin="gunicorn (again)",
        arms={"gunicorn": {"server": "gunicorn", "processes": 1}},
        tests=("latency",),
        configurations={"gunicorn": {"supervisord.conf": "[supervisord]\n"}},
        provenance={"seed": 1},
    )
    path = records.write_campaign(campaign, tmp_path)
    assert records.read_campaign(tmp_path) == campaign
    assert json.loads(path.read_text()) == json.loads(json.dumps(asdict(campaign)))


def test_folder_without_a_campaign_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"not a results folder: it has no campaign\.json"):
        records.read_campaign(tmp_path)
