"""The pictures of a campaign of baselines."""

from collections.abc import Iterator

import altair as alt

from bench.baselines.results import Results, figure
from bench.baselines.row import Row
from bench.baselines.rows import ALONE, rows
from bench.figures import number
from bench.reference import framework_baseline
from bench.theme import PALETTE, THEN, WIDTH, Drawing, Rows, inline

_USER, _SYSTEM, _NOW = PALETTE[0], PALETTE[2], PALETTE[0]


def charts(results: Results) -> tuple[Drawing, ...]:
    """Return every picture there is data for."""
    drawn = (ladder(results), then_and_now(results), concurrency(results))
    return tuple(one for one in drawn if one is not None)


def _measured(results: Results, name: str, *tables: str) -> Iterator[tuple[Row, float]]:
    """Yield each row of ``tables`` that has a valid round, with the median of its ``name``."""
    for row in rows():
        found = figure(results, row.name, name)
        if row.table in tables and found is not None:
            yield row, found.median


def ladder(results: Results) -> Drawing | None:
    """CPU for each request on every rung, user and system stacked."""
    bars: Rows = []
    for row, _ in _measured(results, "rps", "ladder"):
        user, system = (figure(results, row.name, one) for one in ("user_us", "system_us"))
        if user is None or system is None:
            continue
        total = number(user.median + system.median)
        bars += [
            {"rung": row.title, "us": user.median, "order": 0, "colour": _USER, "total": ""},
            {"rung": row.title, "us": system.median, "order": 1, "colour": _SYSTEM, "total": total},
        ]
    if not bars:
        return None
    base = alt.Chart(inline(bars)).encode(
        x=alt.X("us:Q", stack="zero", title="CPU microseconds for each request"),
        y=alt.Y("rung:N", sort=None, title=None, axis=alt.Axis(labelLimit=280)),
        order="order:O",
    )
    drawn = base.mark_bar().encode(color=alt.Color("colour:N", scale=None))
    totals = base.mark_text(align="left", dx=4, fontSize=11).encode(text="total:N")
    return Drawing(
        "ladder",
        "Where a Django request over ASGI spends its time",
        "CPU of the server process for each request on uvicorn, 10 clients, medians of the rounds: "
        "green in user mode, blue in the kernel. Above: from the bare server to stock Django. "
        "Below it: what gets the time back.",
        alt.layer(drawn, totals).properties(width=WIDTH - 240, height=alt.Step(24)),
        reserve_px=280,
    )


def then_and_now(results: Results) -> Drawing | None:
    """Each row as a share of what nginx alone can answer: 2012's, and these."""
    alone = figure(results, ALONE, "rps_per_cpu_s")
    if alone is None:
        return None
    then_alone = next(one.requests_rps for one in framework_baseline() if one.row == "nginx only")
    bars: Rows = []
    for row, answers in _measured(results, "rps_per_cpu_s", "sockets", "frameworks", "work"):
        if row.then_rps is not None:
            title = row.title.strip("`") if row.table != "work" else f"Django {row.title[1:-1]}"
            bars += [
                _bar(title, "2012", row.then_rps / then_alone, THEN),
                _bar(title, "now", answers / alone.median, _NOW),
            ]
    if not bars:
        return None
    base = alt.Chart(inline(bars)).encode(
        x=alt.X("share:Q", title="share of nginx alone", axis=alt.Axis(format="%")),
        y=alt.Y("row:N", sort=None, title=None, axis=alt.Axis(labelLimit=240)),
        yOffset=alt.YOffset("when:N", sort=["2012", "now"]),
    )
    drawn = base.mark_bar().encode(color=alt.Color("colour:N", scale=None))
    labels = base.mark_text(align="left", dx=4, fontSize=10).encode(text="label:N")
    return Drawing(
        "then-and-now",
        "What each answers, as a share of nginx alone, 2012 and now",
        "Grey: Maximum Throughput, 2012, requests/s. Green: now, 64 clients, replies for each CPU "
        "second, medians of the rounds. Machines and versions differ; on either side everything "
        "that serves had one processor.",
        alt.layer(drawn, labels).properties(width=WIDTH - 220, height=alt.Step(13)),
        reserve_px=260,
    )


def _bar(row: str, when: str, share: float, colour: str) -> dict[str, object]:
    label = f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"
    return {"row": row, "when": when, "share": share, "colour": colour, "label": label}


def concurrency(results: Results) -> Drawing | None:
    """nginx alone by clients, each as a share of its highest rate."""
    found = list(_measured(results, "rps", "concurrency"))
    if not found:
        return None
    now_highest = max(rate for _, rate in found)
    then_highest = max(row.then_rps or 0.0 for row, _ in found)
    points: Rows = []
    for row, rate in found:
        if row.then_rps is not None:
            points.append(_point(row, row.then_rps / then_highest, "2012", THEN))
        points.append(_point(row, rate / now_highest, "now", _NOW))
    base = alt.Chart(inline(points)).encode(
        x=alt.X("clients:O", title="clients", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("share:Q", title="share of the highest rate", axis=alt.Axis(format="%")),
        color=alt.Color("colour:N", scale=None),
        detail="when:N",
    )
    return Drawing(
        "concurrency",
        "nginx alone, by how many clients ask at a time",
        "Grey: Maximum Throughput, 2012. Green: now, medians of the rounds. Each as a share of its "
        "own highest rate.",
        alt.layer(
            base.mark_line(strokeWidth=2.2), base.mark_point(filled=True, size=50)
        ).properties(width=WIDTH, height=220),
    )


def _point(row: Row, share: float, when: str, colour: str) -> dict[str, object]:
    return {"clients": row.clients, "share": share, "when": when, "colour": colour}
