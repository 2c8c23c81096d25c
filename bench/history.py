"""The two charts of the Channels load test of 2016-09-06, drawn again with today's figures in them.

Its figures are grey, today's have the colour of their variant. In 2016 every request crossed the
channel layer, so today's relayed requests stand beside the plain ones: they are the fair partner.
Where the campaign ran the software of 2016 as well, on the same machine in the same hour, that
stands between the two.
"""

from collections.abc import Iterator, Mapping

import altair as alt

from bench.axes import spread_apart
from bench.cells import SERIES_BUCKET_S, Cell
from bench.gates import SATURATION
from bench.reference import SETUPS_2016, STUDY_2016, latency_2016, series_2016
from bench.summary import Summary
from bench.theme import THEN, WIDTH, Drawing, Rows, colours, inline, panel, stacked
from bench.workloads import WORKLOADS

PERCENTILES_2016 = {50: "p50_ms", 90: "p90_ms", 95: "p95_ms", 99: "p99_ms"}
# How each set is drawn: the opacity of its bars, the dashes of its lines.
OF_2016 = {
    "channels017": "2016's software, here",
    "channels1": "2016's last releases, here",
}
_OLD_COLOURS = {"channels017": "#8a5a2b", "channels1": "#c79a4b"}
_SERIES = ("2016", *OF_2016.values(), "today", "today, relayed")
_RELAYED = {"relay", "minute"}
_MINUTE_S = 60
_CUT_AT = 4  # times the longest bar of 2016: beside a timeout, nothing else could be seen
_SHORTEST_S = 20  # of a run that is drawn as a line


def latency_then_and_now(summary: Summary) -> Drawing | None:
    """Grouped bars of the 50th, 90th, 95th and 99th percentile, a panel for each setup of 2016."""
    now = list(_latency_now(summary))
    if not now:
        return None
    then = _latency_then()
    cut_ms = _CUT_AT * max(_ms(row) for row in then)
    rows = [_cut_off(row, cut_ms) for row in (*then, *now)]
    highest = min(cut_ms, max(map(_ms, rows)))
    cut = " Bars with ↑ are cut off: their figures say how long they are."
    series = [one for one in _SERIES if any(row["series"] == one for row in rows)]
    panels = []
    for setup in SETUPS_2016:
        bars = [row for row in rows if row["variant"] == setup.variant]
        panels.append(_bars(setup.variant, bars, series, highest, setup is SETUPS_2016[-1]))
    return Drawing(
        "latency-2016",
        "Latency at 300 requests/s in ms, 2016 and today",
        f"Grey: {STUDY_2016} (no bars were published for IPC).{_old_note(summary)} Full colour: "
        "today, GET /. Pale: today, relayed through the channel layer, as every request was in "
        f"2016. The machines of 2016 and of today differ.{_saturated_note(summary)}"
        f"{cut if any(_ms(row) > cut_ms for row in rows) else ''}",
        stacked(panels),
        reserve_px=40,
    )


def _saturated_note(summary: Summary) -> str:
    """Say whose latency is that of a server that hardly carries the rate."""
    found = [
        f"{cell.arm} in {cell.remarks[SATURATION]} of {cell.valid} rounds"
        for cell in summary.lines("latency")
        if SATURATION in cell.remarks
    ]
    if not found:
        return ""
    return f" Saturated, so that the latency grows with the run's length: {', '.join(found)}."


def _old_note(summary: Summary) -> str:
    """Say what the brown marks are, where there are any."""
    names = {"channels017": "the same versions", "channels1": "the last releases of that software"}
    shades = {"channels017": "Dark brown", "channels1": "Light brown"}
    stacks = {row.get("stack") for row in summary.campaign.arms.values()}
    return "".join(
        f" {shades[stack]}: {name}, on this machine in the same hour."
        for stack, name in names.items()
        if stack in stacks
    )


def _bars(
    variant: str, rows: Rows, series: list[str], highest: float, last: bool
) -> alt.LayerChart:
    axis = alt.Axis(labelAngle=0, labels=last, title="percentile" if last else None)
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("percentile:N", axis=axis, sort=None),
        xOffset=alt.XOffset(
            "series:N", sort=series, scale=alt.Scale(domain=series, paddingInner=0.08)
        ),
        y=alt.Y(
            "drawn_ms:Q",
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
    palette = colours(summary.campaign)
    for setup in SETUPS_2016:
        now = palette.get(setup.variant, THEN)
        sets = [
            *(
                (f"{stack}-{setup.variant}", "latency", OF_2016[stack], colour, 1.0)
                for stack, colour in _OLD_COLOURS.items()
            ),
            (setup.variant, "latency", "today", now, 1.0),
            (setup.variant, "relay_latency", "today, relayed", now, 0.5),
        ]
        for arm, test, series, colour, opacity in sets:
            cell = summary.cell(arm, test)
            for percentile, figure in PERCENTILES_2016.items():
                value = cell.median(figure) if cell else None
                if value is not None:
                    yield _bar(setup.variant, percentile, series, value, colour, opacity)


def _bar(
    variant: str, percentile: int, series: str, latency_ms: float, colour: str, opacity: float
) -> dict[str, object]:
    return {
        "variant": variant,
        "percentile": f"{percentile} %",
        "series": series,
        "latency_ms": latency_ms,
        "colour": colour,
        "opacity": opacity,
    }


def _cut_off(row: dict[str, object], cut_ms: float) -> dict[str, object]:
    """Return a bar with how long it is drawn, and what is written over it."""
    latency_ms = _ms(row)
    label = f"{latency_ms:,.0f}" if latency_ms >= 10 else f"{latency_ms:.2g}"
    mark = " ↑" if latency_ms > cut_ms else ""
    return {**row, "drawn_ms": min(latency_ms, cut_ms), "label": f"{label}{mark}"}


def _ms(row: dict[str, object]) -> float:
    return float(str(row["latency_ms"]))


def throughput_then_and_now(summary: Summary) -> Drawing | None:
    """Requests per 5 s over a minute; a much shorter run is drawn as a level."""
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
        f"Grey: {STUDY_2016}, read off its chart.{_old_note(summary)} Colour: today, the median "
        "over the rounds; dashed: relayed through the channel layer, as every request was in 2016; "
        "a level where the run was much shorter. The machines of 2016 and of today "
        f"differ.{_hung_note(summary)}",
        chart.properties(width=WIDTH, height=340),
    )


def _hung_note(summary: Summary) -> str:
    """Say where clients were left without a reply: those are missing from a line of replies."""
    hung = [
        f"{cell.arm}, {cell.median('hung'):.0f} of {WORKLOADS['minute'].concurrency}"
        for cell in summary.lines("minute")
        if cell.median("hung")
    ]
    return (
        f" Clients left without a reply when the run was over: {'; '.join(hung)}." if hung else ""
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
    for cell in _drawn(summary):
        stack = str(summary.campaign.arms[cell.arm].get("stack", "today"))
        layer = summary.campaign.arms[cell.arm].get("layer", "none")
        relayed = stack == "today" and cell.test in _RELAYED and layer != "none"
        for end_s, requests in _per_5s(cell):
            yield {
                "line": f"{cell.arm}{', relayed' * relayed}",
                "end_s": end_s,
                "requests": requests,
                "colour": _OLD_COLOURS.get(stack) or colours(summary.campaign)[cell.arm],
                "dash": [6, 4] if relayed else [1, 0],
            }


def _drawn(summary: Summary) -> Iterator[Cell]:
    """Yield a cell for each line; the test of a whole minute takes the place of shorter ones."""
    minute = {cell.arm: cell for cell in summary.lines("minute")}
    yield from (cell for cell in summary.lines("throughput") if not _covered(cell, minute, summary))
    yield from (cell for cell in summary.lines("relay") if cell.arm not in minute)
    yield from (
        cell
        for arm, cell in minute.items()
        if not summary.cell(arm, "throughput")
        or _covered(cell, minute, summary)
        or _crosses(arm, summary)
    )


def _covered(cell: Cell, minute: Mapping[str, Cell], summary: Summary) -> bool:
    """Whether the test of a minute asks for the same path as ``cell`` did."""
    of_2016 = summary.campaign.arms[cell.arm].get("stack") in OF_2016
    return cell.arm in minute and (of_2016 or not _crosses(cell.arm, summary))


def _crosses(arm: str, summary: Summary) -> bool:
    return summary.campaign.arms[arm].get("layer", "none") != "none"


def _per_5s(cell: Cell) -> list[tuple[float, float]]:
    """Return the series; where the run was much shorter than a minute, its mean as a level."""
    if cell.series and cell.series[-1].end_s >= _SHORTEST_S:
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
