"""A campaign's folder, read whole."""

from dataclasses import dataclass
from pathlib import Path

from bench import records
from bench.errors import BadInput
from bench.records import Campaign, Sample
from bench.summary import Summary, summarize


@dataclass(frozen=True)
class Results:
    """What ``campaign.json`` and ``raw/`` hold."""

    folder: Path
    campaign: Campaign
    samples: tuple[Sample, ...]

    @property
    def summary(self) -> Summary:
        return summarize(self.campaign, self.samples)


def read_results(folder: Path) -> Results:
    """Return the results in ``folder``; raise ``BadInput`` where they are none, or damaged."""
    try:
        campaign = records.read_campaign(folder)
        samples = records.read(folder / "raw")
    except BadInput:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{folder} holds a damaged results file ({error}): "
            "restore it from version control, or run the campaign again"
        ) from error
    if not samples:
        raise BadInput(f"{folder} holds no samples in raw/: run the campaign again")
    return Results(folder, campaign, tuple(samples))
