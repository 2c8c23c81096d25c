"""The pictures of a fan-out campaign: latency, messages per core, and how costs grow."""

from collections.abc import Callable, Iterator
from typing import Any

import altair as alt
from hdrh.histogram import HdrHistogram

from bench.fanout.outcome import Outcome
from bench.fanout.results import AIM_PER_CORE, RATE, STUDY, STUDY_PER_CORE, Results, spread
from bench.theme import PALETTE, THEN, WIDTH, Drawing, Rows, inline

# question -> the axis that its cells differ along
CURVES: dict[str, tuple[str, Callable[[Outcome], float]]] = {
    "subscribers": ("subscribers of a topic", lambda one: one.fan_out),
    "load": ("messages published a second", lambda one: one.rate or 0),
    "topics": ("topics", lambda one: one.topics),
    "sizes": ("bytes a message", lambda one: one.message_bytes),
    "processes": ("server processes", lambda one: one.processes),
}
STEPS = (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 97, 99, 99.5, 99.9)


def charts(results: Results) -> list[Drawing]:
    """Return those pictures for which there is something to draw."""
    drawn = [cdf(results), per_core(results), *(curve(results, name) for name in CURVES)]
    return [drawing for drawing in drawn if drawing is not None]


def cdf(results: Results) -> Drawing | None:
    """The cumulative distribution of delivery latency, a line a cell, all rounds together."""
    rows: Rows = []
    for outcomes in results.cells("compare").values():
        timed = [one for one in outcomes if one.latency_us]
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
            color=alt.Color("arm:N", title=None, scale=alt.Scale(range=list(PALETTE))),
        )
        .properties(width=WIDTH, height=320)
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
        arm = outcomes[0].arm
        yield {"arm": arm, "percentile": percentile, "latency_ms": max(latency_ms, 0.01)}


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
    title, along = CURVES[question]
    rows: Rows = []
    for outcomes in results.cells(question).values():
        if found := spread(outcomes, RATE):
            one = outcomes[0]
            cost = {"cost_us": 1e6 / found.median, "delivery": one.delivery}
            rows.append({"along": along(one), **cost})
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
