"""Goes on with a campaign: one that was interrupted, or one that shall have more rounds.

Rounds are compared within themselves, so they may lie hours apart, if the machine and everything on
it are the same. A round that was interrupted is measured again from its beginning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import records
from bench.errors import BadInput
from bench.ledger import Ledger, writing
from bench.plan import Plan, plan
from bench.records import Campaign, Sample
from bench.variants import resolve


@dataclass(frozen=True)
class Resumed:
    """A campaign to go on with, from round ``first`` on; ``samples`` are all that it has."""

    folder: Path
    campaign: Campaign
    plan: Plan
    first: int
    samples: Sequence[Sample]

    def ledger(self) -> Ledger:
        """Open it again. What it has of an unfinished round is kept, where it does not count."""
        aside = self.folder / "raw" / f"interrupted-{len(self.campaign.resumed)}"
        kept = []
        with writing(self.folder):
            for sample in self.samples:
                if sample.round < self.first:
                    kept.append(sample)
                    continue
                aside.mkdir(exist_ok=True)
                (self.folder / "raw" / sample.file_name).rename(aside / sample.file_name)
        return Ledger(self.folder, self.campaign, kept)


def resumed(folder: Path, rounds: int | None, circumstances: Mapping[str, Any]) -> Resumed:
    """Return the campaign in ``folder``, untouched; ``rounds`` is how many it shall have in all.

    Raises ``BadInput`` where nothing is left to measure, and where ``circumstances``, which are
    those of now, are not those of the campaign.
    """
    campaign = records.read_campaign(folder)
    samples = records.read(folder / "raw")
    first = _first(campaign, samples)
    wanted = rounds or campaign.rounds
    if wanted < first:
        raise BadInput(
            f"--resume {folder}: {first - 1} rounds are measured, and {wanted} wanted: give "
            f"--rounds {first} or more"
        )
    _refuse_another(folder, campaign, circumstances)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    going_on = replace(
        campaign,
        finished=None,
        rounds=wanted,
        resumed=(*campaign.resumed, f"{when}, from round {first} on"),
    )
    return Resumed(folder, going_on, planned(going_on), first, samples)


def planned(campaign: Campaign) -> Plan:
    """Return the plan that ``campaign`` was made of."""
    if not campaign.seconds:
        raise BadInput(f"{campaign.name} does not say how long it measured: begin another campaign")
    made = plan(
        campaign.kind,
        variants=[resolve(name) for name in campaign.arms if name != campaign.twin],
        tests=campaign.tests,
        rounds=campaign.rounds,
        seed=campaign.provenance["seed"],
    )
    return replace(
        made, seconds=campaign.seconds, fewer_rounds=campaign.fewer_rounds, budget_s=None
    )


def _first(campaign: Campaign, samples: Sequence[Sample]) -> int:
    """Return the first round that is not whole: the last one begun, where it was interrupted."""
    if campaign.finished is not None:
        return campaign.rounds + 1
    return max((one.round for one in samples), default=1)


def _refuse_another(folder: Path, campaign: Campaign, now: Mapping[str, Any]) -> None:
    then = campaign.provenance
    for name, is_now in now.items():
        if then[name] != is_now:
            raise BadInput(
                f"--resume {folder}: {_difference(name, then[name], is_now)}. Its rounds would "
                "not belong together: restore that, or begin another campaign"
            )
    if now["uncommitted_changes"]:
        raise BadInput(
            f"--resume {folder}: there are uncommitted changes, and nobody can tell whether they "
            "are those of then: commit them, and begin another campaign"
        )


def _difference(name: str, then: Any, now: Any) -> str:
    if isinstance(then, dict) and isinstance(now, dict):
        key = next(one for one in {**then, **now} if then.get(one) != now.get(one))
        return _difference(f"{name}, {key}", then.get(key), now.get(key))
    return f"{name} was {then} and is {now}"
