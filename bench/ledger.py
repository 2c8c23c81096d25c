"""Writes a campaign down as it goes, so that whatever ends it, what was measured is there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench import proxies, records
from bench.environment import configuration
from bench.errors import BadInput
from bench.plan import Plan
from bench.provenance import PROJECT, anonymous
from bench.records import Campaign, Sample

LOCAL = PROJECT / "results" / "local"  # not under version control


def new_folder(into: Path | None, started: datetime) -> Path:
    """Return the empty folder to write into, made if need be; nothing is ever overwritten."""
    folder = into or LOCAL / started.strftime("%Y%m%d-%H%M%S")
    with writing(folder):
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"{folder} is a file: name a folder that is new or empty")
        if folder.exists() and any(folder.iterdir()):
            raise BadInput(f"{folder} is not empty: name a folder that is new or empty")
        (folder / "raw").mkdir(parents=True)
    return folder


def opened(plan: Plan, folder: Path, started: datetime, provenance: dict[str, object]) -> "Ledger":
    """Return the ledger of a campaign that begins."""
    campaign = Campaign(
        name=folder.resolve().name,
        kind=plan.kind,
        started=started.isoformat(timespec="seconds"),
        finished=None,
        rounds=plan.rounds,
        fewer_rounds=dict(plan.fewer_rounds),
        seconds=dict(plan.seconds),
        control=plan.control.name,
        twin=plan.twin.name,
        arms={arm.name: arm.variant.factors() for arm in plan.arms},
        tests=tuple(test.test for test in plan.tests),
        configurations={
            arm.variant.name: anonymous(configuration(arm.variant) | proxies.files(arm.variant))
            for arm in plan.arms
        },
        provenance=provenance,
    )
    return Ledger(folder, campaign)


class Ledger:
    """The folder of one campaign, as far as it has come."""

    def __init__(self, folder: Path, campaign: Campaign, samples: Sequence[Sample] = ()) -> None:
        self.folder = folder
        self.campaign = campaign
        self.samples = list(samples)
        self._write_campaign()

    def keep(self, sample: Sample) -> None:
        """Write ``sample``, without what names this machine; raise ``BadInput`` on a full disk."""
        nameless = replace(
            sample,
            failure=anonymous(sample.failure),
            log_tail=anonymous(sample.log_tail),
            command=anonymous(sample.command),
            identity=anonymous(sample.identity),
        )
        with writing(self.folder):
            records.write(nameless, self.folder / "raw")
        self.samples.append(nameless)

    def close(self, rounds: int) -> None:
        """Note that the campaign has come to its end, after ``rounds``."""
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        self.campaign = replace(self.campaign, finished=finished, rounds=rounds)
        self._write_campaign()

    def _write_campaign(self) -> None:
        with writing(self.folder):
            records.write_campaign(self.campaign, self.folder)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the file system refuses into one line that names the folder."""
    try:
        yield
    except OSError as error:
        raise BadInput(
            f"cannot write to {folder}: {error.strerror}; what is there stays"
        ) from error
