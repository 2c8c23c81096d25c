"""The charts of a campaign. Each is None where the campaign did not measure what it shows."""

from collections.abc import Iterator, Sequence
from math import log10

import altair as alt

from bench.cells import SERIES_BUCKET_S, Cell
from bench.figures import number
from bench.findings import bounds, extent, times, title
from bench.reference import SETUPS_2016, latency_2016, series_2016
from bench.summary import Ratio, Summary
from bench.theme import INVALID, THEN, WIDTH, Drawing, colours

PERCENTILES_2016 = {50: "p50_ms", 90: "p90_ms", 95: "p95_ms", 99: "p99_ms"}
_CURVE_TICKS = {1: "0", 2: "50", 10: "90", 100: "99", 1000: "99.9", 10_000: "99.99", 100_000: ""}
_TOP_HEADER = alt.Header(orient="top", title=None)

Rows = list[dict[str, object]]


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
    rows: Rows = [
        _ratio_row(summary, ratio)
        for ratio in summary.ratios
        if ratio.figure in summary.verdicts(ratio.test)
    ]
    if not rows:
        return None
    base = alt.Chart().encode(
        y=alt.Y("arm:N", title=None, sort=list(summary.arms)),
        color=alt.Color("colour:N", scale=None),
    )
    axis = alt.Axis(tickCount=5, format="~g")
    scale = alt.Scale(type="log", nice=False, padding=24)
    x = alt.X("ratio:Q", scale=scale, axis=axis, title=f"times {summary.campaign.control}'s")
    layers = alt.layer(
        alt.Chart().mark_rule(strokeDash=[3, 3]).encode(x=alt.datum(1)),
        base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", scale=scale), x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x),
        alt.Chart()
        .mark_text(align="center", dy=-11)
        .encode(x="ratio:Q", y=alt.Y("arm:N", sort=list(summary.arms)), text="label:N"),
    ).properties(width=WIDTH - 130, height=alt.Step(34))
    span = "range over the rounds" if summary.quick else "95 % interval"
    return Drawing(
        "ratios",
        "How far from the control",
        f"Each round's ratio to {summary.campaign.control} measured in the same round; the bar is "
        f"the {span}. A bar across 1 tells no difference.",
        layers.facet(
            data=alt.Data(values=rows),
            row=alt.Row("panel:N", header=_TOP_HEADER, sort=_in_order(rows, "panel")),
        ).resolve_scale(y="independent"),
        reserve_px=130,
    )


def _ratio_row(summary: Summary, ratio: Ratio) -> dict[str, object]:
    low, high = extent(ratio)
    return {
        "panel": f"{title(ratio.test)}: {ratio.figure.label} ({ratio.figure.better} is better)",
        "arm": ratio.arm,
        "ratio": ratio.estimate,
        "low": low,
        "high": high,
        "label": f"{times(ratio.estimate)} ({bounds(ratio)})",
        "colour": colours(summary.arms)[ratio.arm],
    }


def _in_order(rows: Rows, key: str) -> list[object]:
    return list(dict.fromkeys(row[key] for row in rows))


def latency_then_and_now(summary: Summary) -> Drawing | None:
    """The latency chart of 2016 drawn again: its bars in grey, today's in the variant's colour."""
    rows = [*_latency_then(), *_latency_now(summary)]
    if not any(row["series"] != "2016" for row in rows):
        return None
    series = _in_order(rows, "series")
    x = alt.X("percentile:N", title="percentile", axis=alt.Axis(labelAngle=0), sort=None)
    offset = alt.XOffset("series:N", sort=series, scale=alt.Scale(paddingInner=0.08))
    y = alt.Y("latency_ms:Q", title="latency, ms", axis=alt.Axis(tickCount=4))
    bars = alt.layer(
        alt.Chart()
        .mark_bar()
        .encode(
            x=x,
            xOffset=offset,
            y=y,
            color=alt.Color("colour:N", scale=None),
            opacity=alt.Opacity("opacity:Q", scale=None),
        ),
        alt.Chart().mark_text(dy=-7, fontSize=10).encode(x=x, xOffset=offset, y=y, text="label:N"),
    ).properties(width=WIDTH - 60, height=120)
    return Drawing(
        "latency-2016",
        "Latency at 300 requests/s, 2016 and today",
        "Grey: Channels load test, 2016-09-06 (no bars were published for IPC). Full colour: today, "
        "GET /. Pale: today, relayed through the channel layer, as every request was in 2016. "
        "Machines and versions differ.",
        bars.facet(
            data=alt.Data(values=rows),
            row=alt.Row("variant:N", header=_TOP_HEADER, sort=[one.variant for one in SETUPS_2016]),
        ),
        reserve_px=60,
    )


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
                    colour = colours(summary.arms)[setup.variant]
                    yield _bar(setup.variant, percentile, series, value, colour, opacity)


def _bar(
    variant: str, percentile: int, series: str, latency_ms: float, colour: str, opacity: float
) -> dict[str, object]:
    return {
        "variant": variant,
        "percentile": f"{percentile} %",
        "series": series,
        "latency_ms": latency_ms,
        "label": number(latency_ms),
        "colour": colour,
        "opacity": opacity,
    }


def throughput_then_and_now(summary: Summary) -> Drawing | None:
    """The throughput chart of 2016 drawn again, with today's requests per 5 s beside it."""
    now = list(_throughput_now(summary))
    if not now:
        return None
    rows = [*_throughput_then(), *now]
    lines = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("end_s:Q", title="seconds into the run", scale=alt.Scale(domain=[0, 60])),
        y=alt.Y("requests:Q", title="requests per 5 s"),
        color=alt.Color("colour:N", scale=None),
        detail="line:N",
    )
    return Drawing(
        "throughput-2016",
        "Requests per 5 s from ten clients, 2016 and today",
        "Grey: Channels load test, 2016-09-06, read off its chart. Colour: today, the median over "
        "the rounds; dashed: relayed through the channel layer, as every request was in 2016. "
        "Machines and versions differ.",
        alt.layer(
            lines.mark_line(strokeWidth=2).encode(strokeDash=alt.StrokeDash("dash:N", scale=None)),
            _end_labels(rows, "end_s", "requests", span=_span(rows, "requests"), x_max=60),
        ).properties(width=WIDTH, height=340),
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
        for cell in _cells(summary, test):
            for end_s, requests in _per_5s(cell):
                yield {
                    "line": f"{cell.arm}{suffix}",
                    "end_s": end_s,
                    "requests": requests,
                    "colour": colours(summary.arms)[cell.arm],
                    "dash": dash,
                }


def _per_5s(cell: Cell) -> list[tuple[float, float]]:
    """Return the series; of a run too short for one, its mean as a level of five seconds."""
    if cell.series:
        return [(one.end_s, one.ok) for one in cell.series]
    rate = cell.median("rps")
    return [] if rate is None else [(0, rate * SERIES_BUCKET_S), (5, rate * SERIES_BUCKET_S)]


def percentile_curves(summary: Summary) -> Drawing | None:
    """Latency by percentile, the tail stretched so that each nine takes the same room."""
    tests = [one for one in summary.campaign.tests if _mode(summary, one) == "open"]
    rows = [row for test in tests for row in _curve_rows(summary, test)]
    if not rows:
        return None
    ticks = [tick for tick in _CURVE_TICKS if tick <= max(float(str(r["beyond"])) for r in rows)]
    labels = "{" + ",".join(f"'{tick}':'{_CURVE_TICKS[tick]} %'" for tick in ticks) + "}"
    x = alt.X(
        "beyond:Q",
        title="percentile of requests",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(values=ticks, labelExpr=f"{labels}[datum.value]"),
    )
    y = alt.Y("latency_ms:Q", title="latency, ms", scale=alt.Scale(type="log"))
    base = alt.Chart().encode(x=x, y=y, color=alt.Color("colour:N", scale=None))
    layers = alt.layer(
        base.mark_line(strokeWidth=2.2, interpolate="monotone").encode(detail="line:N"),
        base.transform_filter("datum.label != null")
        .mark_text(align="left", dx=6, fontWeight="bold")
        .encode(y=alt.Y("label_y:Q", scale=alt.Scale(type="log")), text="label:N"),
    ).properties(width=WIDTH - 170, height=240)
    return Drawing(
        "percentiles",
        "Latency by percentile",
        "All valid rounds together, from the moment each request was due. The axis gives every "
        "further nine the same room, and ends where fewer than five requests are left.",
        layers.facet(
            data=alt.Data(values=rows),
            row=alt.Row("panel:N", header=_TOP_HEADER, sort=_in_order(rows, "panel")),
        ),
        reserve_px=170,
    )


def _curve_rows(summary: Summary, test: str) -> Rows:
    cells = [cell for cell in _cells(summary, test) if cell.curve]
    stand_in = summary.stand_in(test)
    if stand_in and stand_in.curve:
        cells.insert(0, stand_in)
    ends = {cell.arm: cell.curve[-1].latency_ms for cell in cells}
    apart = spread_apart(ends, gap=0.055, log=True)
    return [
        {
            "panel": title(test),
            "line": cell.arm,
            "beyond": 100 / (100 - point.percentile),
            "latency_ms": point.latency_ms,
            "colour": colours(summary.arms)[cell.arm],
            "label": _curve_label(cell, test) if point is cell.curve[-1] else None,
            "label_y": apart[cell.arm],
        }
        for cell in cells
        for point in cell.curve
    ]


def _curve_label(cell: Cell, test: str) -> str:
    return cell.arm if cell.test == test else f"{cell.arm}, {title(cell.test).split()[1]}"


def latency_against_load(summary: Summary) -> Drawing | None:
    """Latency at each rate that the search for the capacity tried, and where it gave way."""
    rows = [row for cell in summary.cells for row in _step_rows(summary, cell)]
    if not rows:
        return None
    knees: Rows = [
        {
            "rate_rps": cell.median("held_rps"),
            "label": f"{cell.arm}: {number(cell.median('held_rps'))}/s",
            "colour": colours(summary.arms)[cell.arm],
            "row": i,
        }
        for i, cell in enumerate(_cells(summary, "capacity"))
        if cell.median("held_rps") is not None
    ]
    x = alt.X(
        "rate_rps:Q", title="offered load, requests/s", scale=alt.Scale(type="log", nice=False)
    )
    colour = alt.Color("colour:N", scale=None)
    knee = alt.Chart(alt.Data(values=knees)).encode(x=x, color=colour)
    return Drawing(
        "load",
        "Latency against offered load, and the knee",
        "Each dot is one step of the search: filled where the rate held, hollow where it did not. "
        "The upright line is the highest rate that held, in the median of the rounds.",
        alt.layer(
            knee.mark_rule(strokeWidth=1.5, strokeDash=[4, 3]),
            alt.Chart(alt.Data(values=rows))
            .mark_point(size=42, opacity=0.85)
            .encode(
                x=x,
                y=alt.Y("p99_ms:Q", title="p99 latency, ms", scale=alt.Scale(type="log")),
                stroke=alt.Stroke("colour:N", scale=None),
                fill=alt.Fill("fill:N", scale=None),
            ),
            knee.mark_text(align="right", dx=-5, fontWeight="bold").encode(
                text="label:N",
                y=alt.Y("row:Q", axis=None, scale=alt.Scale(domain=[0, 18], reverse=True)),
            ),
        )
        .resolve_scale(y="independent")
        .properties(width=WIDTH, height=320),
    )


def _step_rows(summary: Summary, cell: Cell) -> Iterator[dict[str, object]]:
    colour = colours(summary.arms)[cell.arm]
    if cell.arm == summary.campaign.twin:
        return
    for step in cell.steps:
        if step.rate_rps is not None and step.p99_ms is not None and step.held is not None:
            yield {
                "rate_rps": step.rate_rps,
                "p99_ms": step.p99_ms,
                "colour": colour,
                "fill": colour if step.held else "transparent",
            }


def cpu_per_request(summary: Summary) -> Drawing | None:
    """What one request costs the server, in the interpreter and in the kernel."""
    rows = [row for test in summary.campaign.tests for row in _cpu_rows(summary, test)]
    if not rows:
        return None
    y = alt.Y("arm:N", title=None, sort=list(summary.arms))
    totals = alt.Chart().transform_filter("datum.label != null")
    layers = alt.layer(
        alt.Chart()
        .mark_bar(height=16)
        .encode(
            x=alt.X("cpu_us:Q", title="server CPU per request, µs", axis=alt.Axis(tickCount=5)),
            y=y,
            order=alt.Order("order:Q"),
            color=alt.Color("colour:N", scale=None),
            opacity=alt.Opacity("opacity:Q", scale=None),
        ),
        totals.mark_text(align="left", dx=5).encode(x="total_us:Q", y=y, text="label:N"),
    ).properties(width=WIDTH - 180, height=alt.Step(26))
    return Drawing(
        "cpu",
        "Server CPU per request",
        "User time in full colour, system time pale; every process of the deployment counts, "
        "workers and Redis too.",
        layers.facet(
            data=alt.Data(values=rows),
            row=alt.Row("panel:N", header=_TOP_HEADER, sort=_in_order(rows, "panel")),
        ).resolve_scale(y="independent"),
        reserve_px=190,
    )


def _cpu_rows(summary: Summary, test: str) -> Iterator[dict[str, object]]:
    if _mode(summary, test) != "closed":
        return
    for cell in _cells(summary, test):
        user, system = cell.median("cpu_user_us"), cell.median("cpu_system_us")
        if user is None or system is None:
            continue
        shared = {"panel": title(test), "arm": cell.arm, "colour": colours(summary.arms)[cell.arm]}
        shared["total_us"] = user + system  # type: ignore[assignment]
        yield {**shared, "cpu_us": user, "opacity": 1.0, "order": 0, "label": None}
        yield {
            **shared,
            "cpu_us": system,
            "opacity": 0.5,
            "order": 1,
            "label": f"{number(user)} + {number(system)} µs",
        }


def strips(summary: Summary, test: str) -> Drawing | None:
    """Every attempt second by second, one strip an arm, what did not count shaded."""
    rows = [
        row for arm in summary.arms if (cell := summary.cell(arm, test)) for row in _strip(cell)
    ]
    if not rows:
        return None
    closed = _mode(summary, test) == "closed"
    field, what = ("ok", "requests/s") if closed else ("p99_ms", "p99, ms")
    for row in rows:
        row["colour"] = colours(summary.arms)[str(row["arm"])]
    x = alt.X(
        "at_s:Q", title="seconds of measurement, round after round", axis=alt.Axis(grid=False)
    )
    y = alt.Y(f"{field}:Q", title=what, axis=alt.Axis(tickCount=3), scale=alt.Scale(zero=closed))
    layers = alt.layer(
        alt.Chart()
        .transform_filter("!datum.valid")
        .mark_rect(color=INVALID, opacity=0.22)
        .encode(x="from_s:Q", x2="to_s:Q"),
        alt.Chart().transform_filter("datum.first").mark_rule(opacity=0.35).encode(x="from_s:Q"),
        alt.Chart()
        .mark_line(strokeWidth=1.3)
        .encode(x=x, y=y, detail="attempt:N", color=alt.Color("colour:N", scale=None)),
    ).properties(width=WIDTH - 60, height=64)
    return Drawing(
        f"strips-{test}",
        f"Second by second: {title(test)}",
        "Every attempt of every round, in order; upright lines part them. Shaded: discarded by a "
        "gate, and not in any figure.",
        layers.facet(
            data=alt.Data(values=rows),
            row=alt.Row("arm:N", header=_TOP_HEADER, sort=list(summary.arms)),
        ).resolve_scale(y="independent" if closed else "shared"),
        reserve_px=60,
    )


def _strip(cell: Cell) -> Rows:
    rows: Rows = []
    for at_s, second in enumerate(cell.strip):
        attempt = f"{second.round}.{second.attempt}"
        rows.append(
            {
                "arm": cell.arm,
                "attempt": attempt,
                "at_s": at_s + 0.5,
                "from_s": at_s,
                "to_s": at_s + 1,
                "first": not rows or rows[-1]["attempt"] != attempt,
                "ok": second.ok,
                "p99_ms": second.p99_ms,
                "valid": second.valid,
            }
        )
    return rows


def spread_apart(ends: dict[str, float], gap: float, log: bool = False) -> dict[str, float]:
    """Return where to put each line's label so that none covers another.

    ``gap`` is the least distance: in decades on a logarithmic axis, else in the values' unit.
    """
    placed: dict[str, float] = {}
    last: float | None = None
    for name, end in sorted(ends.items(), key=lambda item: item[1]):
        wanted = log10(end) if log else end
        last = wanted if last is None else max(wanted, last + gap)
        placed[name] = 10**last if log else last
    return placed


def _end_labels(rows: Rows, x: str, y: str, *, span: float, x_max: float) -> alt.Chart:
    """Name each line at its right end."""
    ends: dict[str, dict[str, object]] = {str(row["line"]): row for row in rows}
    apart = spread_apart({name: float(str(row[y])) for name, row in ends.items()}, gap=span * 0.045)
    labels: Rows = [
        {x: x_max, y: apart[name], "line": name, "colour": row["colour"]}
        for name, row in ends.items()
    ]
    return (
        alt.Chart(alt.Data(values=labels))
        .mark_text(align="left", dx=6, fontWeight="bold")
        .encode(x=f"{x}:Q", y=f"{y}:Q", text="line:N", color=alt.Color("colour:N", scale=None))
    )


def _span(rows: Rows, key: str) -> float:
    return max(float(str(row[key])) for row in rows)


def _cells(summary: Summary, test: str) -> Sequence[Cell]:
    """Return the cells of ``test`` with a valid round; the twin repeats the control's line."""
    return [
        cell
        for cell in summary.cells
        if cell.test == test and cell.valid and cell.arm != summary.campaign.twin
    ]


def _mode(summary: Summary, test: str) -> str | None:
    return next((cell.mode for cell in summary.cells if cell.test == test and cell.mode), None)
