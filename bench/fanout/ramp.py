"""How long it takes until all clients of a cell are connected, and subscribed."""

from collections.abc import Iterator, Sequence
from statistics import median

from bench.fanout.outcome import Outcome
from bench.fanout.results import Results
from bench.fanout.spec import Spec

USERS_LEAST = 1_000  # below that there is not much of a ramp
SHOWN = (1, 2, 5, 10, 20, 30, 40, 50)  # steps, beside the last


def ramps(results: Results) -> Iterator[str]:
    """Yield the table of the large cells, in steps of as many users as connect at once."""
    cells = [
        outcomes
        for question in results.questions
        for outcomes in results.cells(question).values()
        if outcomes[0].users >= USERS_LEAST and any(one.ramp for one in outcomes)
    ]
    if not cells:
        return
    yield "## Until everybody is there\n"
    yield (
        f"{Spec.ramp} users connect at once, then subscribe to all their topics at once; the next "
        f"{Spec.ramp} follow when that is live. Medians of the rounds, from the first connection.\n"
    )
    yield "| | subscriptions a user | users | connected after s | subscribed after s | complete |"
    yield "|---|--:|--:|--:|--:|---|"
    for outcomes in cells:
        yield from rows(outcomes)
    yield ""


def rows(outcomes: Sequence[Outcome]) -> Iterator[str]:
    one = outcomes[0]
    ramps = [each.ramp for each in outcomes if each.ramp]
    last = max(map(len, ramps))
    for step in sorted({step for step in SHOWN if step < last} | {last}):
        taken = [ramp[step - 1] for ramp in ramps if len(ramp) >= step]
        users = min(step * Spec.ramp, one.users)
        complete = sum(row["users"] == users for row in taken)
        ready_s = median(row["ready_s"] for row in taken)
        subscribed_s = median(row["subscribed_s"] for row in taken)
        rounds = "yes" if complete == len(outcomes) else f"{complete} of {len(outcomes)} rounds"
        yield (
            f"| {one.question}, {one.arm} | {one.subscriptions:,} | {users:,} | {ready_s:.2f} "
            f"| {subscribed_s:.2f} | {rounds} |"
        )
