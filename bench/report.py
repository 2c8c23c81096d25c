"""A campaign's report: a README in the shape of the 2016 report, its charts, and one page."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench import reference, then
from bench.cells import Cell
from bench.charts import charts
from bench.conclusions import brackets, caution, conclusions, punctuality, standing, twin
from bench.figures import FIGURES, quantity
from bench.findings import ALIKE, MISSING, lost, sections, title
from bench.history import OF_2016, PERCENTILES_2016
from bench.pictures import draw, shown
from bench.records import Campaign
from bench.results import read_results
from bench.summary import Summary
from bench.theme import DARK, FONT, LIGHT, Drawing, colours, config, library

TEMPLATES = Path(__file__).parent / "templates"
CHARTS = "charts"

# The details of each cell: what stands in the wide table under the verdict.
_DETAILS = (
    "p50_ms",
    "p90_ms",
    "p95_ms",
    "p99_ms",
    "p999_ms",
    "rps",
    "rps_per_cpu_s",
    "cpu_user_us",
    "cpu_system_us",
    "cpu_max_cores",
    "pss_mb",
    "processes",
    "lag_p99_ms",
)


_MACHINE = ("cpu", "system", "kernel")
_VERSIONS = (
    "python",
    "Django",
    "channels",
    "daphne",
    "uvicorn",
    "gunicorn",
    "granian",
    "channels_redis",
    "redis-server",
)


@dataclass(frozen=True)
class Detail:
    """One cell in full: ``figures`` in the order of the headings, ``counts`` in words."""

    arm: str
    test: str
    figures: tuple[str, ...]
    counts: str
    rounds: str


@dataclass(frozen=True)
class ThenAndNow:
    """One bar of the latency chart of 2016, and what stands in its place today."""

    setup: str
    percentile: str
    then: str
    here: tuple[str, ...]  # the software of 2016 on this machine, each set of versions that ran
    now: str
    relayed: str


def publish(folder: Path) -> Path:
    """Write the report on the campaign in ``folder`` beside it; return the path of its page.

    Raises ``BadInput`` where the folder holds no results.
    """
    summary = read_results(folder).summary
    drawings = charts(summary)
    draw(drawings, folder / CHARTS)
    (folder / "README.md").write_text(readme(summary, drawings))
    page_path = folder / "index.html"
    page_path.write_text(page(summary, drawings))
    return page_path


def readme(summary: Summary, drawings: tuple[Drawing, ...]) -> str:
    """Return the report in Markdown, pictures by their paths beside it."""
    return _render("README.md.j2", autoescape=False, **_content(summary, drawings))


def page(summary: Summary, drawings: tuple[Drawing, ...]) -> str:
    """Return the report as one page of HTML that needs no network."""
    return _render(
        "index.html.j2",
        autoescape=True,
        library=library().replace("</script", "<\\/script"),
        specs={one.name: {"spec": one.spec, "reserve": one.reserve_px} for one in drawings},
        themes={"light": config(LIGHT), "dark": config(DARK)},
        data=raw_figures(summary),
        **_content(summary, drawings),
    )


def _content(summary: Summary, drawings: tuple[Drawing, ...]) -> dict[str, Any]:
    return {
        "title": title_of(summary.campaign),
        "summary": summary,
        "campaign": summary.campaign,
        "sections": sections(summary),
        "drawings": drawings,
        "charts": CHARTS,
        "standing": standing(summary),
        "caution": caution(summary),
        "twin": twin(summary),
        "conclusions": conclusions(summary),
        "alike": ALIKE,
        "punctuality": punctuality(summary),
        "brackets": brackets(summary),
        "facts": tuple(_facts(summary)),
        "font": FONT,
        "headings": [_heading(name) for name in _DETAILS],
        "details": tuple(_details(summary)),
        "environment": tuple(flat(summary.campaign.provenance)),
        "colours": colours(summary.campaign),
        "reference": reference,
        "old": tuple(OF_2016[stack] for stack in _old(summary)),
        "then_and_now": tuple(_then_and_now(summary)),
        "side_by_side": then.sentences(summary),
        "throughput_2016": reference.throughput_2016(),
    }


def title_of(campaign: Campaign) -> str:
    """Return the report's title; a folder called ``2026-11-21-handlers`` says what it is about."""
    plain = f"Channels load test, {campaign.started[:10]}"
    about = re.fullmatch(r"\d{4}-\d\d-\d\d-(.+)", campaign.name)
    return f"{plain}: {about[1].replace('-', ' ')}" if about else plain


def _heading(name: str) -> str:
    figure = FIGURES[name]
    return figure.heading or ", ".join(filter(None, (figure.label, figure.unit)))


def _details(summary: Summary) -> Iterator[Detail]:
    for cell in summary.cells:
        yield Detail(
            arm=cell.arm,
            test=title(cell.test),
            figures=tuple(quantity(cell.median(name), "") for name in _DETAILS),
            counts=_counts(cell),
            rounds=", ".join(filter(None, (f"{cell.valid} valid", lost(cell)))),
        )


def _facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield what must be known before any number; the environment has the rest."""
    known = summary.campaign.provenance
    machine, versions = known.get("machine") or {}, known.get("versions") or {}
    changed = " with uncommitted changes" if known.get("uncommitted_changes") else ""
    yield "commit", f"{known.get('commit') or 'not known'}{changed}"
    named = [str(machine[name]) for name in _MACHINE if machine.get(name)]
    if machine.get("idle_processors") == "awake":
        named.append("idle processors kept awake")
    yield "machine", ", ".join(named)
    yield (
        "versions",
        ", ".join(f"{name} {versions[name]}" for name in _VERSIONS if name in versions),
    )


def _then_and_now(summary: Summary) -> Iterator[ThenAndNow]:
    published = {(bar.variant, bar.percentile): bar.latency_ms for bar in reference.latency_2016()}
    for setup in reference.SETUPS_2016:
        for percentile, figure in PERCENTILES_2016.items():
            yield ThenAndNow(
                setup.published_as,
                f"{percentile} %",
                quantity(published.get((setup.variant, percentile)), "ms"),
                tuple(
                    _today(summary.cell(f"{stack}-{setup.variant}", "latency"), figure)
                    for stack in _old(summary)
                ),
                _today(summary.cell(setup.variant, "latency"), figure),
                _today(summary.cell(setup.variant, "relay_latency"), figure),
            )


def _old(summary: Summary) -> list[str]:
    """Return the sets of 2016's software that took part."""
    stacks = {arm.partition("-")[0] for arm in summary.campaign.arms}
    return [stack for stack in OF_2016 if stack in stacks]


def _today(cell: Cell | None, figure: str) -> str:
    return quantity(cell.median(figure) if cell else None, "ms")


def _counts(cell: Cell) -> str:
    if cell.counts is None:
        return MISSING
    parts = [
        f"{getattr(cell.counts, name):,} {word}"
        for name, word in (("error", "errors"), ("timeout", "timeouts"), ("dropped", "dropped"))
        if getattr(cell.counts, name)
    ]
    return f"{cell.counts.ok:,} ok" + "".join(f", {part}" for part in parts)


def flat(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value in nested ``data`` as text, under its dotted name."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{name}.")
        elif isinstance(value, list | tuple):
            yield name, " ".join(map(str, value))
        else:
            yield name, "not known" if value is None else str(value)


def raw_figures(summary: Summary) -> dict[str, Any]:
    """Return every figure of every round, for somebody who wants to compute with them."""
    return {
        "campaign": summary.campaign.name,
        "kind": summary.campaign.kind,
        "cells": [
            {
                "arm": cell.arm,
                "test": cell.test,
                "valid": cell.valid,
                "discarded": cell.discarded,
                "failed": cell.failed,
                "rounds": {name: dict(one.rounds) for name, one in cell.spreads.items()},
            }
            for cell in summary.cells
        ],
    }


def _render(template: str, *, autoescape: bool, **content: Any) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,  # noqa: S701 - off for Markdown only, which fences what it quotes
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["fenced"] = fenced
    environment.filters["inline"] = inline
    environment.filters["shown"] = shown
    environment.filters["pretty"] = lambda value: json.dumps(value, indent=1)
    return environment.get_template(template).render(content)


def fenced(text: str, language: str = "") -> str:
    """Return ``text`` as a Markdown code block that nothing in it can end."""
    longest = max((len(run) for run in _runs(text, "`")), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _runs(text: str, character: str) -> list[str]:
    return "".join(one if one == character else " " for one in text).split()


def inline(text: object) -> str:
    """Return ``text`` so that neither Markdown nor HTML reads anything into it."""
    marked = str(text).replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")
    return "".join(f"\\{one}" if one in "\\`*_[]|~" else one for one in marked)
