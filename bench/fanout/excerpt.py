"""What docs/fan-out.md takes from a campaign."""

from collections.abc import Iterator

from bench.fanout.aims import verdicts
from bench.fanout.costs import CURVES, along, cost_us
from bench.fanout.page import limit, lost
from bench.fanout.pairs import HUB_OVER_GROUP, pairs
from bench.fanout.results import RATE, Results, ratio, spread
from bench.fanout.words import ranged
from bench.figures import number
from bench.spreads import times


def carried(results: Results) -> Iterator[str]:
    """Yield what one process delivers on each layer, and how the aims came out."""
    yield "| layer | `group_send` | hub | hub over `group_send` |"
    yield "|---|--:|--:|---|"
    for pair in pairs(results, "limit"):
        if pair.what == HUB_OVER_GROUP:
            group, hub = (ranged(spread(one, RATE)) for one in (pair.second, pair.first))
            found = times(ratio(results, pair.first, pair.second, RATE))
            yield f"| {pair.first[0].layer} | {group} | {hub} | {found} |"
    yield ""
    for pair in pairs(results, "redis"):
        outcome, found = pair.first[0], times(ratio(results, pair.first, pair.second, RATE))
        subscribers = f"{outcome.fan_out:g} subscribers a topic"
        yield f"- Hub over group_send, with {subscribers}, {outcome.layer}: {found}."
    yield from (f"- {one}" for one in (*limit(results), *lost(results)))
    judged = verdicts(results)
    missed = [one for one in judged if not one.reached]
    yield f"- Of the {len(judged)} aims that were set, {len(judged) - len(missed)} were reached."
    for one in missed:
        yield f"- Not reached: {one.aim}: {one.measured or 'not measured'}; wanted {one.wanted}."


def costs(results: Results) -> Iterator[str]:
    """Yield the µs of server CPU for a delivery, along each axis."""
    yield "| | | `group_send` | hub | hub over `group_send` |"
    yield "|---|--:|--:|--:|--:|"
    for question, (title, _) in CURVES.items():
        for place, ways in along(results, question).items():
            group, hub = ways.get("group", []), ways.get("hub", [])
            found = ratio(results, hub, group, RATE)
            texts = (number(cost_us(group)), number(cost_us(hub)))
            less = f"{found.spread.median:.3g}x" if found else "–"
            yield f"| {title} | {place:,.6g} | {' | '.join(texts)} | {less} |"
