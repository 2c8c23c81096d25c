"""The pictures of a run: how many times faster, and every measure on an axis of its own."""

import altair as alt

from bench.axes import log_ticks, padded
from bench.layers.measures import MEASURES, Measure
from bench.layers.peers import AGAIN, PEERS
from bench.layers.results import Results, ratio, values
from bench.spreads import spread
from bench.theme import PALETTE, WIDTH, Drawing, Rows, inline, panel, stacked

_COLOURS = dict(zip(PEERS, PALETTE, strict=False))
# What a reader compares with; the TCP twins are in the tables.
_AGAINST = ("redis", "redis_pubsub", "inmemory", "asgi_ipc", "raw")
_UNCOMPARED = ("idle", "interference")  # one may be 0, the other is a ratio already


def drawings(results: Results) -> list[Drawing]:
    """Return the pictures; none where nothing was measured."""
    return [one for one in (comparison(results), detail(results)) if one is not None]


def comparison(results: Results) -> Drawing | None:
    """Return the picture that says it at once: a row a measure, a point a layer, 1 is equal."""
    found = compared(results)
    if not found:
        return None
    low, high = padded([1.0, *(float(str(row[end])) for row in found for end in ("low", "high"))])
    axis = alt.Axis(values=log_ticks(low, high), title=None, labelExpr="datum.label + '×'")
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    names = [PEERS[name].title for name in _AGAINST if any(name == row["peer"] for row in found)]
    colours = [_COLOURS[name] for name in _AGAINST if PEERS[name].title in names]
    legend = alt.Legend(
        title=None, orient="top", direction="horizontal", columns=3, labelLimit=240, symbolOpacity=1
    )
    colour = alt.Color("layer:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    titles = list(dict.fromkeys(str(row["measure"]) for row in found))
    y = alt.Y("measure:N", sort=titles, title=None, axis=alt.Axis(labelLimit=300, grid=True))
    base = alt.Chart(inline(found))
    ranges = base.mark_rule(strokeWidth=2.5, opacity=0.55).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", y=y, color=colour
    )
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("median:Q", scale=scale, axis=axis), y=y, color=colour
    )
    # In-memory is near one of its neighbours in most rows: its labels stand below.
    below = f"datum.layer === '{PEERS['inmemory'].title}'"
    labels, lower = (
        base.transform_filter(which)
        .mark_text(dy=away_px, fontSize=10)
        .encode(x=alt.X("median:Q", scale=scale, axis=axis), y=y, text="label:N")
        for which, away_px in ((f"!({below})", -11), (below, 13))
    )
    equal = alt.Chart(inline([{"x": 1.0}])).mark_rule(strokeDash=[4, 3]).encode(x="x:Q")
    drawn: alt.LayerChart = alt.layer(equal, ranges, points, labels, lower)  # type: ignore[assignment]
    return Drawing(
        name="layers",
        title="How many times faster channels_ipc is",
        note=(
            "Right of the dashed line channels_ipc is faster, left of it the other is. Points are "
            "medians of the rounds' own ratios, bars run from the least to the greatest. "
            "Logarithmic axis; what was not measured has no point."
        ),
        chart=drawn.properties(width=WIDTH - 220, height=alt.Step(40)),
        reserve_px=300,
    )


def compared(results: Results) -> Rows:
    """Return a row for each measure and layer that channels_ipc can be compared with."""
    found: Rows = []
    for measure in MEASURES.values():
        for name in _AGAINST:
            if name not in measure.peers or measure.name in _UNCOMPARED:
                continue
            pair = ("ipc", name) if measure.higher_is_better else (name, "ipc")
            one = ratio(results, measure.name, pair)
            if one is not None:
                found.append(
                    {
                        "measure": measure.title,
                        "peer": name,
                        "layer": PEERS[name].title,
                        "median": one.spread.median,
                        "low": one.spread.low,
                        "high": one.spread.high,
                        "label": label(one.spread.median),
                    }
                )
    return found


def label(value: float) -> str:
    return f"{value:,.0f}×" if value >= 10 else f"{value:.2g}×"


def detail(results: Results) -> Drawing | None:
    """Return every measure by itself, in its own unit."""
    groups = [
        (measure, found) for measure in MEASURES.values() if (found := rows(results, measure))
    ]
    if not groups:
        return None
    return Drawing(
        name="layers-detail",
        title="Channel layers, measured by themselves",
        note=(
            "Medians of the rounds with their ranges, on logarithmic axes, which have no place "
            "for a layer that used nothing or was not measured: the tables have."
        ),
        chart=stacked([_panel(measure, found) for measure, found in groups]),
        reserve_px=190,
    )


def rows(results: Results, measure: Measure) -> Rows:
    """Return a row a peer that was measured."""
    found: Rows = []
    for name in measure.peers:
        one = spread(list(values(results, measure.name, name, measure.figure).values()))
        if name != AGAIN and one is not None and one.low > 0:
            found.append(
                {
                    "layer": PEERS[name].title,
                    "median": one.median,
                    "low": one.low,
                    "high": one.high,
                    "colour": _COLOURS[name],
                }
            )
    return found


def _panel(measure: Measure, found: Rows) -> alt.LayerChart:
    low, high = padded([float(str(row[end])) for row in found for end in ("low", "high")])
    axis = alt.Axis(values=log_ticks(low, high), title=measure.unit, format="~s")
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    y = alt.Y("layer:N", sort=None, title=None, axis=alt.Axis(labelLimit=180))
    colour = alt.Color("colour:N", scale=None)
    base = alt.Chart(inline(found))
    ranges = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", y=y, color=colour
    )
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("median:Q", scale=scale, axis=axis), y=y, color=colour
    )
    better = "more is better" if measure.higher_is_better else "less is better"
    head = f"{measure.title} ({better})"
    return panel([ranges, points], head, width=WIDTH, height=alt.Step(20))
