"""How every picture looks: one colour a variant, the same type, light and dark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import altair
import vl_convert

from bench.records import Campaign

Spec = dict[str, Any]
Rows = list[dict[str, object]]

# Told apart by people with any of the common colour blindnesses, and on white as well as on black.
PALETTE = (
    "#159c77",
    "#dd6327",
    "#3b8ad9",
    "#bf5fa6",
    "#b58a06",
    "#7d6fd6",
    "#2f9fb0",
    "#a4693f",
    "#7a8f1f",
    "#d24b62",
)
THEN = "#9aa1a9"  # figures of earlier studies
INVALID = "#d24b62"
WIDTH = 680
FONT = "Inter, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"


@dataclass(frozen=True)
class Ink:
    text: str
    quiet: str
    grid: str
    paper: str


LIGHT = Ink(text="#1c2024", quiet="#5c646d", grid="#e5e8eb", paper="#ffffff")
DARK = Ink(text="#e9ecef", quiet="#a2abb5", grid="#2c333a", paper="#14181c")


@dataclass(frozen=True)
class Drawing:
    """A chart with what a reader needs beside it.

    ``reserve_px`` is the width that axes and labels take beside the panels of a stacked chart.
    """

    name: str
    title: str
    note: str
    chart: altair.TopLevelMixin
    reserve_px: int = 0

    @cached_property
    def spec(self) -> Spec:
        """The chart as Vega-Lite, its data inside, without title and theme."""
        with altair.data_transformers.enable(max_rows=None):
            return dict(self.chart.to_dict())


def colours(campaign: Campaign) -> Mapping[str, str]:
    """Return each arm's colour: the control's first, its twin's the same, the others in order."""
    others = [arm for arm in campaign.arms if arm not in (campaign.control, campaign.twin)]
    first = dict.fromkeys(campaign.arms, PALETTE[0])
    return first | {arm: PALETTE[(i + 1) % len(PALETTE)] for i, arm in enumerate(others)}


def config(ink: Ink) -> Spec:
    """Return the Vega-Lite configuration: quiet axes, no frame, text in the colour of ``ink``."""
    label = {"labelColor": ink.quiet, "titleColor": ink.quiet, "labelFontSize": 11}
    return {
        "background": ink.paper,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            **label,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "domain": False,
            "ticks": False,
            "gridColor": ink.grid,
            "labelPadding": 6,
        },
        "axisX": {"grid": False, "labelOverlap": True},
        "axisY": {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "start", "titleY": -8},
        "concat": {"spacing": 18},
        "legend": {"labelColor": ink.text, "titleColor": ink.quiet, "labelFontSize": 11},
        "header": {"labelColor": ink.text, "labelFontSize": 11},
        "text": {"color": ink.text, "fontSize": 11},
        "rule": {"color": ink.quiet},
        "title": {
            "color": ink.text,
            "subtitleColor": ink.quiet,
            "subtitleLineHeight": 16,
            "anchor": "start",
            "fontSize": 16,
            "subtitleFontSize": 12,
            "offset": 14,
        },
    }


def inline(rows: Rows) -> altair.InlineData:
    """Return ``rows`` as data that stands in the chart itself."""
    return altair.InlineData(values=rows)


def panel(
    layers: Sequence[altair.Chart], head: str, *, width: int, height: int | altair.Step
) -> altair.LayerChart:
    """Return ``layers`` over one another under a small heading."""
    title = altair.TitleParams(head, fontSize=12, offset=8, anchor="start", frame="group")
    layered: altair.LayerChart = altair.layer(*layers)  # type: ignore[assignment]
    return layered.properties(width=width, height=height, title=title)


def stacked(panels: Sequence[altair.LayerChart]) -> altair.VConcatChart:
    """Return ``panels`` one under the other: small multiples that fit a phone."""
    return altair.vconcat(*panels)


def picture(drawing: Drawing, ink: Ink) -> Spec:
    """Return the chart as it stands by itself: with its title, and in the colours of ``ink``."""
    title = {"text": drawing.title, "subtitle": wrapped(drawing.note)}
    return {**drawing.spec, "title": title, "config": config(ink), "padding": 16}


def wrapped(text: str, columns: int = 105) -> list[str]:
    """Break ``text`` into lines, because Vega breaks none."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= columns:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def svg(drawing: Drawing, ink: Ink) -> str:
    return str(vl_convert.vegalite_to_svg(picture(drawing, ink)))


def png(drawing: Drawing, ink: Ink) -> bytes:
    return bytes(vl_convert.vegalite_to_png(picture(drawing, ink), scale=2))


def library() -> str:
    """Return the script that draws the specifications in a page, which needs no network for it."""
    # Its stub demands a snippet; without one, the bundle sets `vegaEmbed` for the page.
    return str(vl_convert.javascript_bundle())  # type: ignore[call-arg]
