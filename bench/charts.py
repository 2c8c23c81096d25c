"""The charts of a campaign. Each is None where the campaign did not measure what it shows."""

from collections.abc import Iterator
from typing import TypeVar

import altair as alt

from bench.axes import log_ticks, padded, spread_apart
from bench.cells import Cell
from bench.figures import Figure, number, quantity
from bench.findings import extent, span, times, title
from bench.history import latency_then_and_now, throughput_then_and_now
from bench.summary import Ratio, Summary
from bench.theme import INVALID, WIDTH, Drawing, Rows, colours, inline, panel, stacked
from bench.workloads import WORKLOADS

Group = TypeVar("Group")

_CURVE_TICKS = {2: "50", 10: "90", 100: "99", 1000: "99.9", 10_000: "99.99"}
_CROSS = "M-0.9,-0.9L0.9,0.9M0.9,-0.9L-0.9,0.9"
_COLOUR = alt.Color("colour:N", scale=None)
_ROWS = alt.Y("arm:N", sort=None, axis=None)
_ROW = alt.Step(32)


def charts(summary: Summary) -> tuple[Drawing, ...]:
    """Return every chart that ``summary`` has data for, in the order of a report."""
    drawn = (
        ratios(summary),
        latency_then_and_now(summary),
        throughput_then_and_now(summary),
        percentile_curves(summary),
        latency_against_load(summary),
        cpu_per_request(summary),
        strips(summary, "latency"),
        strips(summary, "throughput"),
    )
    return tuple(drawing for drawing in drawn if drawing is not None)


def ratios(summary: Summary) -> Drawing | None:
    """Every headline ratio with its interval, on a logarithmic axis: twice is as far as half."""
    groups = [
        (test, figure, rows)
        for test in summary.campaign.tests
        for figure in summary.verdicts(test)
        if (rows := [_ratio_row(summary, one) for one in summary.ratios_of(test, figure)])
    ]
    if not groups:
        return None
    ends = [
        float(str(row[end])) for _, _, rows in groups for row in rows for end in ("low", "high")
    ]
    domain = padded([*ends, 1.0])
    panels = [
        _ratio_panel(summary, f"{title(test)}: {_better(figure)}", rows, domain, last)
        for (test, figure, rows), last in _marking_last(groups)
    ]
    bar = "range over the rounds" if summary.quick else "95 % interval (or a range, where said)"
    return Drawing(
        "ratios",
        "How far from the control",
        f"The ratio to {summary.campaign.control} in the same round; the bar is the {bar}. "
        + (
            ""
            if summary.quick
            else "A bar across 1, the dashed line, tells no difference, and neither does one that "
            "ends no further from it than the control's own."
        ),
        stacked(panels),
        reserve_px=24,
    )


def _marking_last(groups: list[Group]) -> Iterator[tuple[Group, bool]]:
    """Yield each of ``groups`` with whether it is the last, which has the axis for all."""
    for index, group in enumerate(groups, start=1):
        yield group, index == len(groups)


def _better(figure: Figure) -> str:
    return f"{figure.heading}, {'less' if figure.better == 'lower' else 'more'} is better"


def _ratio_panel(
    summary: Summary, head: str, rows: Rows, domain: tuple[float, float], last: bool
) -> alt.LayerChart:
    axis = alt.Axis(
        values=log_ticks(*domain),
        format="~g",
        labels=last,
        title=f"times {summary.campaign.control}'s" if last else None,
    )
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    base = alt.Chart(inline(rows)).encode(y=_ROWS, color=_COLOUR)
    one = alt.Chart(inline([{"one": 1}])).mark_rule(strokeDash=[4, 3])
    return panel(
        [
            one.encode(x=alt.X("one:Q", scale=scale, axis=axis)),
            base.mark_rule(strokeWidth=1.5, opacity=0.45).encode(x="ratio:Q", x2="one:Q"),
            base.mark_rule(strokeWidth=6, opacity=0.55).encode(x="low:Q", x2="high:Q"),
            base.mark_point(filled=True, size=42, opacity=1).encode(x="ratio:Q"),
            *_captions(rows),
        ],
        head,
        width=WIDTH,
        height=_ROW,
    )


def _captions(rows: Rows) -> tuple[alt.Chart, alt.Chart]:
    """Write each arm's name and its figure above its mark: an axis would take half a phone."""
    base = alt.Chart(inline(rows)).encode(y=_ROWS)
    name = base.mark_text(align="left", dy=-11).encode(x=alt.value(0), text="arm:N")
    label = base.mark_text(align="right", dy=-11).encode(x=alt.value("width"), text="label:N")
    return name, label


def _ratio_row(summary: Summary, ratio: Ratio) -> dict[str, object]:
    low, high = extent(ratio)
    return {
        "arm": ratio.arm,
        "ratio": ratio.estimate,
        "low": low,
        "high": high,
        "one": 1,
        "label": f"{times(ratio.estimate)} ({span(ratio, bounded=not summary.quick)})",
        "colour": colours(summary.campaign)[ratio.arm],
    }


def percentile_curves(summary: Summary) -> Drawing | None:
    """Latency by percentile, the tail stretched so that each nine takes the same room."""
    groups = [
        (test, cells)
        for test in summary.campaign.tests
        if summary.mode(test) == "open" and (cells := _curves(summary, test))
    ]
    if not groups:
        return None
    panels = [_curve_panel(summary, *group, last) for group, last in _marking_last(groups)]
    return Drawing(
        "percentiles",
        "Latency by percentile",
        "All valid rounds together, from the moment each request was due; one that failed counts "
        "as its timeout. The axis gives every further nine the same room, and ends where fewer "
        "than five requests are left.",
        stacked(panels),
        reserve_px=_label_px(groups),
    )


def _curves(summary: Summary, test: str) -> list[Cell]:
    """Return the cells with a curve, from the median on; the control's stand-in among them."""
    cells = summary.lines_with_stand_in(test)
    return [cell for cell in cells if cell.curve and cell.curve[-1].percentile > 50]


def _curve_panel(summary: Summary, test: str, cells: list[Cell], last: bool) -> alt.LayerChart:
    points = [
        {
            "line": _curve_name(cell, test),
            "beyond": 100 / (100 - point.percentile),
            "latency_ms": point.latency_ms,
            "colour": colours(summary.campaign)[cell.arm],
        }
        for cell in cells
        for point in cell.curve
        if point.percentile >= 50
    ]
    domain = padded([float(str(point["latency_ms"])) for point in points])
    ends = {str(point["line"]): float(str(point["latency_ms"])) for point in points}
    apart = spread_apart(ends, share=0.062, span=domain, log=True)
    furthest = {str(point["line"]): point for point in points}
    labels: Rows = [{**point, "latency_ms": apart[line]} for line, point in furthest.items()]
    base = alt.Chart(inline(points)).encode(
        x=_nines(points, last), y=_log_ms(domain), color=_COLOUR
    )
    names = alt.Chart(inline(labels)).encode(x="beyond:Q", y="latency_ms:Q", color=_COLOUR)
    return panel(
        [
            base.mark_line(strokeWidth=2.2, interpolate="monotone").encode(detail="line:N"),
            names.mark_text(align="left", dx=6, fontWeight="bold").encode(text="line:N"),
        ],
        f"{title(test)}, latency in ms",
        width=WIDTH - _label_px([(test, cells)]),
        height=230,
    )


def _label_px(groups: list[tuple[str, list[Cell]]]) -> int:
    """Return the room for the longest name beside the curves, and for the axis."""
    return 50 + 7 * max(len(_curve_name(cell, test)) for test, cells in groups for cell in cells)


def _curve_name(cell: Cell, test: str) -> str:
    return cell.arm if cell.test == test else f"{cell.arm} on {WORKLOADS[cell.test].path}"


def _nines(points: Rows, last: bool) -> alt.X:
    furthest = max(float(str(point["beyond"])) for point in points)
    labels = "{" + ",".join(f"'{tick}':'{text}'" for tick, text in _CURVE_TICKS.items()) + "}"
    return alt.X(
        "beyond:Q",
        title="percentile of requests" if last else None,
        scale=alt.Scale(type="log", domain=[2, furthest], nice=False),
        axis=alt.Axis(
            values=[tick for tick in _CURVE_TICKS if tick <= furthest],
            labelExpr=f"{labels}[datum.value]",
            grid=True,
        ),
    )


def _log_ms(domain: tuple[float, float], head: str | None = None) -> alt.Y:
    return alt.Y(
        "latency_ms:Q",
        title=head,
        scale=alt.Scale(type="log", domain=list(domain), nice=False),
        axis=alt.Axis(values=log_ticks(*domain), format="~g", minExtent=24),
    )


def latency_against_load(summary: Summary) -> Drawing | None:
    """Latency at each rate that the search for the capacity tried, and where it gave way."""
    steps = [row for cell in summary.lines("capacity") for row in _steps(summary, cell)]
    if not steps:
        return None
    rates = padded([float(str(step["rate_rps"])) for step in steps])
    latencies = padded([float(str(step["latency_ms"])) for step in steps])
    x = alt.X(
        "rate_rps:Q",
        title="offered load, requests/s",
        scale=alt.Scale(type="log", domain=list(rates), nice=False),
        axis=alt.Axis(values=log_ticks(*rates), format=",~r"),
    )
    dots = alt.Chart(inline(steps)).mark_point(size=40, opacity=0.8, strokeWidth=1.6)
    chart = alt.layer(
        *_knees(summary, x),
        dots.encode(
            x=x,
            y=_log_ms(latencies, "p99, ms"),
            stroke=alt.Stroke("colour:N", scale=None),
            fill=alt.Fill("fill:N", scale=None),
            shape=alt.Shape("shape:N", scale=None),
        ),
    )
    return Drawing(
        "load",
        "Latency against offered load, and the knee",
        "Each mark is a step of the search: a dot where the rate held, a cross where it did not. "
        "The dashed line is the highest rate that held, in the median of the rounds.",
        chart.properties(width=WIDTH, height=320),
    )


def _knees(summary: Summary, x: alt.X) -> tuple[alt.Chart, alt.Chart]:
    rows: Rows = [
        {
            "rate_rps": cell.median("held_rps"),
            "label": f"{cell.arm} {quantity(cell.median('held_rps'), '/s')}",
            "colour": colours(summary.campaign)[cell.arm],
            "at_px": 8 + 15 * i,
        }
        for i, cell in enumerate(summary.lines("capacity"))
        if cell.median("held_rps") is not None
    ]
    base = alt.Chart(inline(rows)).encode(x=x, color=_COLOUR)
    names = base.mark_text(align="right", dx=-5, fontWeight="bold").encode(
        text="label:N", y=alt.Y("at_px:Q", scale=None, axis=None)
    )
    return base.mark_rule(strokeWidth=1.3, strokeDash=[4, 3]), names


def _steps(summary: Summary, cell: Cell) -> Iterator[dict[str, object]]:
    colour = colours(summary.campaign)[cell.arm]
    for step in cell.steps:
        if step.rate_rps is not None and step.p99_ms is not None and step.held is not None:
            yield {
                "rate_rps": step.rate_rps,
                "latency_ms": step.p99_ms,
                "colour": colour,
                "fill": colour if step.held else "transparent",
                "shape": "circle" if step.held else _CROSS,
            }


def cpu_per_request(summary: Summary) -> Drawing | None:
    """What one request costs the server, in the interpreter and in the kernel."""
    groups = [
        (test, rows)
        for test in summary.campaign.tests
        if summary.mode(test) == "closed" and (rows := list(_cpu_rows(summary, test)))
    ]
    if not groups:
        return None
    most = max(float(str(row["to_us"])) for _, rows in groups for row in rows)
    return Drawing(
        "cpu",
        "Server CPU per request",
        "User time in full colour, system time pale, over all processes of a deployment, workers "
        "and Redis included.",
        stacked([_cpu_panel(summary, *group, most, last) for group, last in _marking_last(groups)]),
        reserve_px=24,
    )


def _cpu_panel(summary: Summary, test: str, rows: Rows, most: float, last: bool) -> alt.LayerChart:
    axis = alt.Axis(tickCount=4, labels=last, title="µs per request" if last else None)
    bars = alt.Chart(inline(rows)).mark_bar(height=9)
    return panel(
        [
            bars.encode(
                x=alt.X("from_us:Q", axis=axis, scale=alt.Scale(domain=[0, most], nice=False)),
                x2="to_us:Q",
                y=_ROWS,
                color=_COLOUR,
                opacity=alt.Opacity("opacity:Q", scale=None),
            ),
            *_captions([row for row in rows if "label" in row]),
        ],
        title(test),
        width=WIDTH,
        height=_ROW,
    )


def _cpu_rows(summary: Summary, test: str) -> Iterator[dict[str, object]]:
    for cell in summary.lines_with_stand_in(test):
        user_us, system_us = cell.median("cpu_user_us"), cell.median("cpu_system_us")
        if user_us is None or system_us is None:
            continue
        arm, colour = _curve_name(cell, test), colours(summary.campaign)[cell.arm]
        total_us, label = user_us + system_us, f"{number(user_us + system_us)} µs"
        user = {"from_us": 0, "to_us": user_us, "opacity": 1.0, "label": label}
        system = {"from_us": user_us, "to_us": total_us, "opacity": 0.5}
        yield {"arm": arm, "colour": colour, **user}
        yield {"arm": arm, "colour": colour, **system}


def strips(summary: Summary, test: str) -> Drawing | None:
    """Every attempt second by second, one strip an arm, what did not count shaded."""
    cells = [cell for arm in summary.arms if (cell := summary.cell(arm, test)) and cell.strip]
    if not cells:
        return None
    closed = summary.mode(test) == "closed"
    longest = max(len(cell.strip) for cell in cells)
    panels = [
        _strip_panel(summary, cell, closed, longest, last) for cell, last in _marking_last(cells)
    ]
    figure = "Replies/s" if closed else "The p99 latency in ms"
    return Drawing(
        f"strips-{test}",
        f"Second by second: {title(test)}",
        f"{figure} in every second of every attempt, in order; upright lines part the attempts. "
        "Shaded: discarded by a gate, and in no figure. A triangle: requests failed.",
        stacked(panels),
        reserve_px=50,
    )


def _strip_panel(
    summary: Summary, cell: Cell, closed: bool, longest: int, last: bool
) -> alt.LayerChart:
    rows = _strip(cell)
    attempts = list({str(row["attempt"]): row for row in reversed(rows)}.values())
    x = alt.X(
        "at_s:Q",
        scale=alt.Scale(domain=[0, longest], nice=False),
        axis=alt.Axis(
            labels=last, tickCount=6, title="seconds, round after round" if last else None
        ),
    )
    y = alt.Y(
        "ok:Q" if closed else "p99_ms:Q",
        title=None,
        axis=alt.Axis(tickCount=2, minExtent=34),
        scale=alt.Scale(zero=True),
    )
    layers = [
        alt.Chart(inline(attempts)).mark_rule(opacity=0.3).encode(x=alt.X("from_s:Q")),
        alt.Chart(inline(rows))
        .mark_line(strokeWidth=1.4, color=colours(summary.campaign)[cell.arm])
        .encode(x=x, y=y, detail="attempt:N"),
    ]
    if failing := [row for row in rows if row["failed"]]:
        mark = alt.Chart(inline(failing)).mark_point(shape="triangle-up", size=24, filled=True)
        layers.append(mark.encode(x=x, y=alt.value("height"), color=alt.value(INVALID)))
    if discarded := [row for row in rows if not row["valid"]]:
        shade = alt.Chart(inline(discarded)).mark_rect(color=INVALID, opacity=0.2)
        layers.insert(0, shade.encode(x="from_s:Q", x2="to_s:Q"))
    return panel(layers, cell.arm, width=WIDTH - 50, height=56)


def _strip(cell: Cell) -> Rows:
    return [
        {
            "attempt": f"{second.round}.{second.attempt}",
            "at_s": at_s + 0.5,
            "from_s": at_s,
            "to_s": at_s + 1,
            "ok": second.ok,
            "failed": second.failed,
            "p99_ms": second.p99_ms,
            "valid": second.valid,
        }
        for at_s, second in enumerate(cell.strip)
    ]
