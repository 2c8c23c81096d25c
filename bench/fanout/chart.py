"""The pictures of a fan-out campaign: latency, messages per core, and how costs grow."""

from collections.abc import Iterator
from typing import Any

import altair as alt
from hdrh.histogram import HdrHistogram

from bench.fanout.costs import CURVES, along, cost_us
from bench.fanout.outcome import Outcome
from bench.fanout.results import AIM_PER_CORE, RATE, STUDY, STUDY_PER_CORE, Results, spread
from bench.theme import PALETTE, THEN, WIDTH, Drawing, Rows, inline

STEPS = (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 97, 99, 99.5, 99.9)


def charts(results: Results) -> list[Drawing]:
    """Return those pictures for which there is something to draw."""
    drawn = [cdf(results), per_core(results), *(curve(results, name) for name in CURVES)]
    return [drawing for drawing in drawn if drawing is not None]


def cdf(results: Results) -> Drawing | None:
    """The cumulative distribution of delivery latency, a panel a layer, all rounds together."""
    rows: Rows = []
    for outcomes in results.cells("compare").values():
        timed = [one for one in outcomes if one.valid and one.latency_us]
        if timed:
            rows.extend(points(timed))
    if not rows:
        return None
    chart = (
        alt.Chart(inline(rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("latency_ms:Q", scale=alt.Scale(type="log"), title="delivery latency, ms"),
            y=alt.Y("percentile:Q", title="% of records"),
            color=alt.Color("way:N", title=None, scale=alt.Scale(range=list(PALETTE))),
        )
        .properties(width=WIDTH // 3, height=160)
        .facet(facet=alt.Facet("where:N", title=None), columns=3)
    )
    note = "From the publisher's clock to the subscriber's check, over every record; same load."
    return Drawing("latency", "Delivery latency", note, chart, 190)


def points(outcomes: list[Outcome]) -> Iterator[dict[str, object]]:
    merged: Any = HdrHistogram(1, 3_600_000_000, 3)
    for one in outcomes:
        assert one.latency_us is not None
        merged.decode_and_add(one.latency_us.encode())
    for percentile in STEPS:
        latency_ms = merged.get_value_at_percentile(percentile) / 1000
        one = outcomes[0]
        way = f"{one.delivery}, {one.transport}"
        at = {"percentile": percentile, "latency_ms": max(latency_ms, 0.01)}
        yield {"where": one.where, "way": way, **at}


def per_core(results: Results) -> Drawing | None:
    """Messages per server core, with the study's figure and our aim drawn in."""
    rows: Rows = []
    for outcomes in results.cells("limit").values():
        if (found := spread(outcomes, RATE)) is not None:
            one = outcomes[0]
            label = f"{one.arm}, {one.users:,} x {one.subscriptions:,}"
            rows.append({"arm": label, "rate": found.median, "low": found.low, "high": found.high})
    if not rows:
        return None
    base = alt.Chart(inline(rows))
    y = alt.Y("arm:N", sort="-x", title=None, axis=alt.Axis(labelLimit=280))
    axis = alt.Axis(format="~s", title="deliveries per server CPU-second")
    bars = base.mark_bar(color=PALETTE[0]).encode(x=alt.X("rate:Q", axis=axis), y=y)
    ranges = base.mark_rule().encode(x="low:Q", x2="high:Q", y=y)
    marks: Rows = [
        {"at": STUDY_PER_CORE, "what": STUDY},
        {"at": AIM_PER_CORE, "what": "this project's aim"},
    ]
    lines = alt.Chart(inline(marks)).mark_rule(color=THEN, strokeDash=[4, 3]).encode(x="at:Q")
    names = (
        alt.Chart(inline(marks))
        .mark_text(align="left", dx=4, baseline="bottom", y=-4)
        .encode(x="at:Q", text="what:N")
    )
    chart = alt.layer(bars, ranges, lines, names).properties(width=WIDTH - 100, height=alt.Step(24))
    note = "Each record counted and checked by its subscriber. Machines differ by nine years."
    return Drawing("per-core", "Messages per server core", note, chart, 290)


def curve(results: Results, question: str) -> Drawing | None:
    """What a delivery costs, in microseconds of the server, along one axis."""
    title = CURVES[question][0]
    rows: Rows = [
        {"along": place, "cost_us": cost, "delivery": delivery}
        for place, ways in along(results, question).items()
        for delivery, outcomes in ways.items()
        if (cost := cost_us(outcomes))
    ]
    if not rows:
        return None
    scale = alt.Scale(type="log")
    chart = (
        alt.Chart(inline(rows))
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X("along:Q", scale=scale, title=title),
            y=alt.Y("cost_us:Q", scale=scale, title="server µs a delivery"),
            color=alt.Color("delivery:N", title=None, scale=alt.Scale(range=list(PALETTE))),
        )
        .properties(width=WIDTH, height=240)
    )
    note = "Processor time of the whole server side for each record delivered; medians of rounds."
    return Drawing(f"cost-{question}", f"What a delivery costs, by {title}", note, chart, 60)
