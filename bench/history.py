"""The two charts of the Channels load test of 2016-09-06, drawn again with today's figures in them.

Its figures are grey, today's have the colour of their variant. In 2016 every request crossed the
channel layer, so today's relayed requests stand beside the plain ones.
"""

from collections.abc import Iterator

import altair as alt

from bench.axes import spread_apart
from bench.cells import SERIES_BUCKET_S, Cell
from bench.reference import SETUPS_2016, STUDY_2016, latency_2016, series_2016
from bench.summary import Summary
from bench.theme import THEN, WIDTH, Drawing, Rows, colours, inline, panel, stacked

PERCENTILES_2016 = {50: "p50_ms", 90: "p90_ms", 95: "p95_ms", 99: "p99_ms"}
_SERIES = ("2016", "today", "today, relayed")
_MINUTE_S = 60


def latency_then_and_now(summary: Summary) -> Drawing | None:
    """Grouped bars of the 50th, 90th, 95th and 99th percentile, a panel for each setup of 2016."""
    now = list(_latency_now(summary))
    if not now:
        return None
    rows = [*_latency_then(), *now]
    highest = max(float(str(row["latency_ms"])) for row in rows)
    panels = []
    for setup in SETUPS_2016:
        bars = [row for row in rows if row["variant"] == setup.variant]
        panels.append(_bars(setup.variant, bars, highest, setup is SETUPS_2016[-1]))
    return Drawing(
        "latency-2016",
        "Latency at 300 requests/s in ms, 2016 and today",
        f"Grey: {STUDY_2016} (no bars were published for IPC). Full colour: today, GET /. Pale: "
        "today, relayed through the channel layer, as every request was in 2016. Machines and "
        "versions differ.",
        stacked(panels),
        reserve_px=40,
    )


def _bars(variant: str, rows: Rows, highest: float, last: bool) -> alt.LayerChart:
    axis = alt.Axis(labelAngle=0, labels=last, title="percentile" if last else None)
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("percentile:N", axis=axis, sort=None),
        xOffset=alt.XOffset(
            "series:N", sort=_SERIES, scale=alt.Scale(domain=_SERIES, paddingInner=0.08)
        ),
        y=alt.Y(
            "latency_ms:Q",
            title=None,
            axis=alt.Axis(tickCount=3, minExtent=24),
            scale=alt.Scale(domain=[0, highest * 1.12], nice=False),
        ),
    )
    drawn = base.mark_bar().encode(
        color=alt.Color("colour:N", scale=None), opacity=alt.Opacity("opacity:Q", scale=None)
    )
    labels = base.mark_text(dy=-7, fontSize=10).encode(text="label:N")
    return panel([drawn, labels], variant, width=WIDTH - 40, height=105)


def _latency_then() -> Rows:
    return [
        _bar(bar.variant, int(bar.percentile), "2016", bar.latency_ms, THEN, 1.0)
        for bar in latency_2016()
    ]


def _latency_now(summary: Summary) -> Iterator[dict[str, object]]:
    shades = {"latency": ("today", 1.0), "relay_latency": ("today, relayed", 0.5)}
    for setup in SETUPS_2016:
        for test, (series, opacity) in shades.items():
            cell = summary.cell(setup.variant, test)
            for percentile, figure in PERCENTILES_2016.items():
                value = cell.median(figure) if cell else None
                if value is not None:
                    colour = colours(summary.campaign)[setup.variant]
                    yield _bar(setup.variant, percentile, series, value, colour, opacity)


def _bar(
    variant: str, percentile: int, series: str, latency_ms: float, colour: str, opacity: float
) -> dict[str, object]:
    return {
        "variant": variant,
        "percentile": f"{percentile} %",
        "series": series,
        "latency_ms": latency_ms,
        "label": f"{latency_ms:.0f}" if latency_ms >= 10 else f"{latency_ms:.2g}",
        "colour": colour,
        "opacity": opacity,
    }


def throughput_then_and_now(summary: Summary) -> Drawing | None:
    """Requests per 5 s over a minute; a run too short for that is drawn as a level."""
    now = list(_throughput_now(summary))
    if not now:
        return None
    rows = [*_throughput_then(), *now]
    highest = max(float(str(row["requests"])) for row in rows) * 1.05
    lines = alt.Chart(inline(rows)).encode(
        x=alt.X(
            "end_s:Q",
            title="seconds into the run",
            scale=alt.Scale(domain=[0, _MINUTE_S]),
            axis=alt.Axis(values=list(range(0, _MINUTE_S + 1, 10))),
        ),
        y=alt.Y(
            "requests:Q", title="requests per 5 s", scale=alt.Scale(domain=[0, highest], nice=False)
        ),
        color=alt.Color("colour:N", scale=None),
        detail="line:N",
    )
    chart = alt.layer(
        lines.mark_line(strokeWidth=2.2).encode(strokeDash=alt.StrokeDash("dash:N", scale=None)),
        *_labels(rows, highest),
    )
    return Drawing(
        "throughput-2016",
        "Requests per 5 s from ten clients, 2016 and today",
        f"Grey: {STUDY_2016}, read off its chart. Colour: today, the median over the rounds; "
        "dashed: relayed through the channel layer, as every request was in 2016; a level where "
        "the run was shorter than ten seconds. Machines and versions differ.",
        chart.properties(width=WIDTH, height=340),
    )


def _throughput_then() -> Rows:
    return [
        {
            "line": f"{point.variant}, 2016",
            "end_s": point.end_s,
            "requests": point.requests_per_5s,
            "colour": THEN,
            "dash": [1, 0],
        }
        for point in series_2016()
    ]


def _throughput_now(summary: Summary) -> Iterator[dict[str, object]]:
    dashes = {"throughput": ([1, 0], ""), "relay": ([6, 4], ", relayed")}
    for test, (dash, suffix) in dashes.items():
        for cell in summary.lines(test):
            for end_s, requests in _per_5s(cell):
                yield {
                    "line": f"{cell.arm}{suffix}",
                    "end_s": end_s,
                    "requests": requests,
                    "colour": colours(summary.campaign)[cell.arm],
                    "dash": dash,
                }


def _per_5s(cell: Cell) -> list[tuple[float, float]]:
    """Return the series; where the run was too short for one, its mean as a level."""
    if len(cell.series) > 1:
        return [(one.end_s, one.ok) for one in cell.series]
    rate = cell.median("rps")
    return [] if rate is None else [(end_s, rate * SERIES_BUCKET_S) for end_s in (0, _MINUTE_S)]


def _labels(rows: Rows, highest: float) -> tuple[alt.Chart, alt.Chart, alt.Chart]:
    """Name each line at the right edge, with a hair line from where it ends to its name."""
    ends = {str(row["line"]): row for row in rows}
    heights = {name: float(str(row["requests"])) for name, row in ends.items()}
    apart = spread_apart(heights, share=0.046, span=(0, highest))
    labels: Rows = [
        {**row, "edge_s": _MINUTE_S, "bend_s": _MINUTE_S - 2, "label_y": apart[name]}
        for name, row in ends.items()
    ]
    base = alt.Chart(inline(labels)).encode(color=alt.Color("colour:N", scale=None))
    hair = base.mark_rule(strokeWidth=0.8, opacity=0.5)
    along = hair.encode(x="end_s:Q", y="requests:Q", x2="bend_s:Q")
    across = hair.encode(x="bend_s:Q", y="requests:Q", x2="edge_s:Q", y2="label_y:Q")
    names = base.mark_text(align="left", dx=5, fontWeight="bold").encode(
        x="edge_s:Q", y="label_y:Q", text="line:N"
    )
    return along, across, names
