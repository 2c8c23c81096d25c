"""The verdict for the terminal, narrow enough for 100 columns."""

from rich.table import Table
from rich.text import Text

from bench.conclusions import caution, standing
from bench.findings import MISSING, Entry, Row, Section, sections
from bench.summary import Summary

STYLES = {"better": "green", "worse": "red", "same": "dim", "unknown": ""}
_WIDEST_FIGURES = 2


def verdict_table(summary: Summary) -> Table:
    """Return the headline figures of every arm and test, with ratios and validity."""
    table = Table(
        title=f"Campaign {summary.campaign.name}",
        caption=_caption(summary),
        title_justify="left",
        caption_justify="left",
        box=None,
        pad_edge=False,
        show_header=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column()
    for _ in range(_WIDEST_FIGURES):
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
    table.add_column(min_width=9)
    for section in sections(summary):
        _add(table, section, "interval" if not summary.quick else "range")
    return table


def _add(table: Table, section: Section, spread: str) -> None:
    table.add_row()
    heads = [text for figure in section.figures for text in (figure.heading, f"ratio ({spread})")]
    dim = (Text(text, style="dim") for text in (*_padded(heads), "rounds"))
    table.add_row(Text(section.title, style="bold"), *dim)
    for row in section.rows:
        table.add_row(_name(row), *_cells(row), _rounds(row))


def _padded(texts: list[str]) -> list[str]:
    return texts + [""] * (2 * _WIDEST_FIGURES - len(texts))


def _name(row: Row) -> Text:
    return Text.assemble(row.arm, (f" {row.role}" if row.role else "", "dim"))


def _cells(row: Row) -> list[Text]:
    found = [cell for entry in row.entries for cell in (Text(entry.value), _ratio(entry))]
    return found + [Text()] * (2 * _WIDEST_FIGURES - len(found))


def _ratio(entry: Entry) -> Text:
    if not entry.ratio:
        return Text("" if entry.value != MISSING else MISSING, style="dim")
    mark = "≈ " if entry.tone == "same" else ""
    return Text(f"{mark}{entry.ratio} ({entry.bounds})", style=STYLES[entry.tone])


def _rounds(row: Row) -> Text:
    return Text.assemble(row.rounds, (f"\n{row.lost}" if row.lost else "", "yellow"))


def _caption(summary: Summary) -> Text:
    warning = caution(summary)
    lines = [(standing(summary).replace("`", ""), "")]
    if warning:
        lines.append((f"\n{warning}", "bold red"))
    return Text.assemble(*lines)
