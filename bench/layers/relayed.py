"""What channels_ipc set out to reach in a whole deployment, judged by the headline campaign. Pure.

Layers by themselves (``bench.layers.aims``) say nothing of it: here each request goes from Daphne
over the layer to a worker and back, beside Daphne alone and beside the same over Redis.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.conclusions import brackets
from bench.figures import FIGURES
from bench.findings import bounds, times
from bench.layers.aims import WORDS
from bench.summary import Ratio, Summary

JUDGED_BY = ("rps", "rps_per_cpu_s")
OURS = ("daphne-ipc", "relay")


@dataclass(frozen=True)
class Aim:
    """Relayed requests over channels_ipc, to another arm under another test: at least ``limit``."""

    text: str
    arm: str
    test: str
    limit: float

    def ratios(self, summary: Summary) -> list[Ratio]:
        """Return what each figure came to; those that no round has on both sides are left out."""
        above, below = summary.cell(*OURS), summary.cell(self.arm, self.test)
        found = (summary.between(above, below, figure) for figure in JUDGED_BY)
        return [ratio for ratio in found if ratio is not None]

    def reached(self, summary: Summary) -> bool | None:
        """Return whether each figure's estimate reaches the limit; None where one is missing."""
        found = self.ratios(summary)
        if len(found) < len(JUDGED_BY):
            return None
        return all(ratio.estimate >= self.limit for ratio in found)


AIMS = (
    Aim("Daphne alone", "daphne-ipc", "throughput", 0.8),
    Aim("the same over Redis", "daphne-redis", "relay", 5.0),
    Aim("gunicorn, which has no layer to cross", "gunicorn", "throughput", 0.8),
)


def judged(summary: Summary) -> Iterator[str]:
    """Yield a line for each aim: what it came to, by figure, and whether that is enough."""
    for aim in AIMS:
        came_to = " and ".join(
            f"{times(one.estimate)} times as many {FIGURES[one.figure.name].label}"
            f" ({bounds(one, ' to ')})"
            for one in aim.ratios(summary)
        )
        yield (
            f"- Against {aim.text}: {came_to or 'nothing'}. The aim was at least {aim.limit:g}"
            f" times: {WORDS[aim.reached(summary)]}."
        )
    yield f"\n{brackets(summary)}"
