"""The picture of a run: every measure on a logarithmic axis, a point a peer with its range."""

import altair as alt

from bench.axes import log_ticks, padded
from bench.layers.measures import MEASURES, Measure
from bench.layers.peers import PEERS
from bench.layers.results import Results, spread, values
from bench.theme import PALETTE, WIDTH, Drawing, Rows, inline, panel, stacked

_COLOURS = dict(zip(PEERS, PALETTE, strict=False))


def chart(results: Results) -> Drawing | None:
    """Return the picture; None where nothing was measured."""
    groups = [
        (measure, found) for measure in MEASURES.values() if (found := rows(results, measure))
    ]
    if not groups:
        return None
    panels = [_panel(measure, found) for measure, found in groups]
    return Drawing(
        name="layers",
        title="Channel layers, measured by themselves",
        note=(
            "Medians of the rounds with their ranges, on logarithmic axes, which have no place "
            "for a layer that used nothing or was not measured: the tables have."
        ),
        chart=stacked(panels),
        reserve_px=190,
    )


def rows(results: Results, measure: Measure) -> Rows:
    """Return a row a peer that was measured."""
    found: Rows = []
    for name in measure.peers:
        one = spread(list(values(results, measure.name, name, measure.figure).values()))
        if one is not None and one.low > 0:
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
