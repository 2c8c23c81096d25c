"""``bench run`` from the command line to its exit code, on deployments made up in memory."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import bench.cli.run as command
from bench import records
from bench.campaign import Failed, Measurement
from bench.cli import main
from bench.errors import BadInput
from bench.provenance import Pinning
from bench.records import Gate, Load, Machine, Sample, Usage
from bench.variants import Variant
from bench.workloads import Workload

STOLEN = Gate("steal", ok=False, measured=0.5, limit=0.02, unit="cores", reason="0.5 were stolen")


@dataclass
class Made:
    """Deployments that answer at once. ``on_measure`` is called with the count of measurements."""

    measurement: Measurement
    broken: set[str] = field(default_factory=set)
    on_measure: Callable[[int], None] = lambda _: None
    measured: int = 0
    running: int = 0
    identity: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def deployed(self, variant: Variant) -> Iterator["Made"]:
        if variant.name in self.broken:
            raise Failed(f"{variant.name} did not start", "its last words")
        self.running += 1
        try:
            yield self
        finally:
            self.running -= 1

    def violations(self) -> list[str]:
        return []

    def log_tail(self) -> str:
        return ""

    def measure(self, test: Workload, *, duration_s: float, warmup_s: float) -> Measurement:
        self.measured += 1
        self.on_measure(self.measured)
        return self.measurement


@pytest.fixture
def made(
    make_load: Callable[..., Load],
    make_usage: Callable[..., Usage],
    make_machine: Callable[..., Machine],
    monkeypatch: pytest.MonkeyPatch,
) -> Made:
    usage = make_usage()
    made = Made(Measurement(make_load(), usage, usage, make_machine(), (), ("locust",)))
    monkeypatch.setattr(command, "Servers", lambda _: made)
    monkeypatch.setattr(command.supervise, "require", lambda *_: None)
    return made


def bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments])


def short(into: Path, *arguments: str) -> Result:
    """Run the shortest campaign."""
    return bench("--tests", "latency", "--rounds", "1", "--into", str(into), *arguments)


@pytest.mark.usefixtures("made")
def test_run_ends_with_the_table_and_the_path_of_the_report(tmp_path: Path) -> None:
    result = short(tmp_path / "one", "--variants", "gunicorn,daphne-ipc")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "one" / "index.html").is_file()
    assert (tmp_path / "one" / "README.md").is_file()
    table, _, path = result.output.rpartition("Report: ")
    assert "gunicorn (again)" in table
    assert "daphne-ipc" in table
    assert path.strip() == str(tmp_path / "one" / "index.html")


@pytest.mark.usefixtures("made")
def test_run_writes_what_it_set_out_to_do(tmp_path: Path) -> None:
    assert short(tmp_path / "one", "--seed", "5", "--seconds", "9").exit_code == 0
    campaign = records.read_campaign(tmp_path / "one")
    assert (campaign.kind, campaign.rounds, campaign.tests) == ("quick", 1, ("latency",))
    assert campaign.finished
    assert campaign.provenance["seed"] == 5
    assert len(records.read(tmp_path / "one" / "raw")) == 4


def test_run_of_an_invalid_campaign_says_which_gate_and_exits_1(made: Made, tmp_path: Path) -> None:
    made.measurement = Measurement(
        made.measurement.load,
        made.measurement.server,
        made.measurement.generator,
        made.measurement.machine,
        (STOLEN,),
        (),
    )
    result = short(tmp_path / "one", "--variants", "gunicorn")
    assert result.exit_code == command.INVALID == 1
    assert "This campaign is invalid:" in result.output
    said = " ".join(result.output.split())
    assert "gunicorn, latency: no valid sample in round 1: steal (0.5 were stolen)" in said
    assert len(records.read(tmp_path / "one" / "raw")) == 8  # every attempt is published


def test_run_of_the_headline_leaves_out_what_this_machine_has_no_program_for(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(variant: Variant, _: object) -> str | None:
        return "redis-server is missing" if variant.layer == "redis" else None

    monkeypatch.setattr(command.supervise, "missing", missing)
    result = short(tmp_path / "one")
    assert result.exit_code == 0
    assert "skipped daphne-redis: redis-server is missing" in result.output
    samples = records.read(tmp_path / "one" / "raw")
    assert {one.variant for one in samples} == {"gunicorn", "daphne-ipc"}


def test_run_reports_a_variant_that_does_not_start_and_exits_1(made: Made, tmp_path: Path) -> None:
    made.broken.add("daphne-ipc")
    result = short(tmp_path / "one", "--variants", "gunicorn,daphne-ipc")
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert "daphne-ipc, latency: no valid sample in round 1: daphne-ipc did not start" in said
    assert "its last words" in (tmp_path / "one" / "README.md").read_text()


@pytest.mark.parametrize("one", [signal.SIGINT, signal.SIGTERM])
def test_run_that_is_interrupted_reports_what_it_measured_and_exits_130(
    made: Made, tmp_path: Path, one: signal.Signals
) -> None:
    def interrupt(count: int) -> None:
        if count == 3:
            os.kill(os.getpid(), one)

    made.on_measure = interrupt
    before = signal.getsignal(one)
    result = bench("--rounds", "3", "--into", str(tmp_path / "one"))
    assert result.exit_code == command.INTERRUPTED == 130
    assert "interrupted: everything is stopped" in result.output
    assert "Report: " in result.output
    assert made.running == 0
    assert len(records.read(tmp_path / "one" / "raw")) == 2
    assert records.read_campaign(tmp_path / "one").finished is None
    assert signal.getsignal(one) is before


@pytest.fixture
def cut_short(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign of three rounds that was interrupted in the second."""

    def interrupt(count: int) -> None:
        if count == 6:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(command.provenance, "uncommitted_changes", lambda: False)
    made.on_measure = interrupt
    asked = ("--variants", "gunicorn,daphne-ipc", "--tests", "latency", "--seconds", "9")
    into = tmp_path / "one"
    assert bench("--full", "--rounds", "3", "--into", str(into), *asked).exit_code == 130
    assert len(records.read(into / "raw")) == 5
    made.on_measure = lambda _: None
    return into


def order(folder: Path) -> list[tuple[int, str]]:
    started = sorted(records.read(folder / "raw"), key=lambda one: one.round)
    return [(one.round, one.arm) for one in started]


def test_run_goes_on_with_the_round_that_was_interrupted(cut_short: Path) -> None:
    whole_before = [one for one in records.read(cut_short / "raw") if one.round == 1]
    result = bench("--resume", str(cut_short))
    assert result.exit_code == 0, result.output
    assert "3 rounds, from round 2 on" in result.output
    campaign = records.read_campaign(cut_short)
    assert (campaign.rounds, campaign.seconds) == (3, {"latency": 9})
    assert campaign.finished
    assert order(cut_short) == [
        (number, arm)
        for number in (1, 2, 3)
        for arm in ("daphne-ipc", "gunicorn", "gunicorn (again)")
    ]
    assert [one for one in records.read(cut_short / "raw") if one.round == 1] == whole_before
    # What the interrupted round had is kept, and counts nowhere.
    assert [one.round for one in records.read(cut_short / "raw" / "interrupted-1")] == [2, 2]
    assert "from round 2 on |" in (cut_short / "README.md").read_text()


def test_run_goes_on_with_a_whole_campaign_only_to_more_rounds(cut_short: Path) -> None:
    assert bench("--resume", str(cut_short)).exit_code == 0
    refused = bench("--resume", str(cut_short))
    assert refused.exit_code == 2
    assert "3 rounds are measured, and 3 wanted: give --rounds 4 or more" in refused.output
    assert bench("--resume", str(cut_short), "--rounds", "4").exit_code == 0
    assert {one.round for one in records.read(cut_short / "raw")} == {1, 2, 3, 4}
    assert len(records.read_campaign(cut_short).resumed) == 2


@pytest.mark.parametrize(
    ("name", "now", "said"),
    [
        ("commit", lambda: "0123abc", "and is 0123abc"),
        ("versions", lambda: {"python": "2.7.18"}, "versions, python was 3"),
        ("uncommitted_changes", lambda: True, "uncommitted_changes was False and is True"),
    ],
)
def test_run_goes_on_only_with_what_is_still_the_same(
    cut_short: Path, monkeypatch: pytest.MonkeyPatch, name: str, now: object, said: str
) -> None:
    before = records.read(cut_short / "raw")
    monkeypatch.setattr(command.provenance, name, now)
    refused = bench("--resume", str(cut_short))
    assert refused.exit_code == 2
    assert said in refused.output
    assert len(refused.output.splitlines()) == 1
    assert records.read(cut_short / "raw") == before


def test_run_that_cannot_start_changes_nothing_of_what_it_would_go_on_with(
    cut_short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise BadInput("port 8000 is held by nginx (pid 12): stop it")

    monkeypatch.setattr(command.supervise, "require", busy)
    before = records.read_campaign(cut_short), records.read(cut_short / "raw")
    assert bench("--resume", str(cut_short)).exit_code == 2
    assert (records.read_campaign(cut_short), records.read(cut_short / "raw")) == before


def test_run_interrupted_at_once_has_nothing_to_report(made: Made, tmp_path: Path) -> None:
    made.on_measure = lambda _: os.kill(os.getpid(), signal.SIGINT)
    result = short(tmp_path / "one")
    assert result.exit_code == 130
    assert "nothing had been measured" in result.output


@pytest.mark.usefixtures("made")
def test_run_gives_the_runner_its_processors_back(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    assert short(tmp_path / "one").exit_code == 0
    assert os.sched_getaffinity(0) == before


def test_run_keeps_itself_to_the_side_of_the_generator() -> None:
    allowed = os.sched_getaffinity(0)
    first = min(allowed)
    with command.kept_to(Pinning((), (first,))):
        assert os.sched_getaffinity(0) == {first}
    assert os.sched_getaffinity(0) == allowed


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--variants", "dafne-ipc"), "unknown variant 'dafne-ipc': did you mean daphne-ipc"),
        (("--tests", "latncy"), "unknown test 'latncy': did you mean latency"),
        (("--rounds", "0"), "--rounds 0 measures nothing"),
        (("--seconds", "-1"), "--seconds -1 measures nothing"),
        (("--tests", "relay", "--variants", "gunicorn"), "relay runs on none of gunicorn"),
    ],
)
def test_run_of_what_cannot_be_run_is_one_line_and_exit_2(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = bench(*arguments, "--into", str(tmp_path / "one"))
    assert result.exit_code == 2
    assert message in result.output
    assert result.output.count("\n") == 1
    assert not (tmp_path / "one").exists()


@pytest.mark.usefixtures("made")
def test_run_into_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    result = short(tmp_path)
    assert result.exit_code == 2
    assert "is not empty: name a folder that is new or empty" in result.output
    assert [one.name for one in tmp_path.iterdir()] == ["thesis.txt"]


def test_run_beside_a_deployment_that_is_up_is_refused(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise BadInput("port 8000 is held by nginx (pid 12): stop it")

    monkeypatch.setattr(command.supervise, "require", busy)
    result = short(tmp_path / "one")
    assert result.exit_code == 2
    assert "port 8000 is held by nginx" in result.output
    assert made.measured == 0


def test_run_stops_when_the_disk_is_full(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(sample: Sample, folder: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records, "write", full)
    result = short(tmp_path / "one")
    assert result.exit_code == 2
    assert "No space left on device" in result.output
    assert (made.running, made.measured) == (0, 1)
