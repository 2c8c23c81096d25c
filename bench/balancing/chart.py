"""The pictures of a study: each cell on an axis of its own, a point a column with its range."""

import altair as alt

from bench.balancing.figures import Readings
from bench.balancing.page import heading
from bench.balancing.reading import Study
from bench.theme import PALETTE, WIDTH, Drawing, Rows, inline, panel, stacked

_FIGURES = (
    ("rate", "rps", "Replies per second", "What this machine's cores make of each front."),
    (
        "per-cpu",
        "per_cpu_s",
        "Replies per second of server CPU",
        "What carries over to a machine with more cores.",
    ),
)


def charts(study: Study, readings: Readings) -> list[Drawing]:
    """Return the pictures for which there is something to show."""
    return [
        Drawing(name, title, f"{note} Medians of the rounds, with their ranges.", stacked(panels))
        for name, figure, title, note in _FIGURES
        if (panels := list(_panels(study, readings, figure)))
    ]


def _panels(study: Study, readings: Readings, figure: str) -> list[alt.LayerChart]:
    found = [(cell, rows(study, readings, cell.name, figure)) for cell in study.cells]
    return [_panel(heading(cell).replace("`", ""), data) for cell, data in found if data]


def rows(study: Study, readings: Readings, cell: str, figure: str) -> Rows:
    """Return a row for each column and tool that was measured."""
    found: Rows = []
    for place, column in enumerate(study.columns):
        for tool in study.tools:
            one = readings.spread(cell, tool, column.name, figure)
            if one is not None:
                label = f"{column.name}, {tool}" if len(study.tools) > 1 else column.name
                colour = PALETTE[place % len(PALETTE)]
                found.append(
                    {
                        "label": label,
                        "median": one.median,
                        "low": one.low,
                        "high": one.high,
                        "colour": colour,
                    }
                )
    return found


def _panel(head: str, data: Rows) -> alt.LayerChart:
    base = alt.Chart(inline(data))
    scale = alt.Scale(zero=True)
    y = alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=180))
    colour = alt.Color("colour:N", scale=None)
    ranges = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale, title=None), x2="high:Q", y=y, color=colour
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("median:Q", scale=scale), y=y, color=colour
    )
    return panel([ranges, points], head, width=WIDTH, height=alt.Step(16))
