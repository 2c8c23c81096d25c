"""The verdict for the terminal, narrow enough for 80 columns."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from bench.conclusions import caution, standing
from bench.findings import Entry, Row, Section, sections
from bench.summary import Summary

STYLES = {"better": "green", "worse": "red", "same": "dim", "unknown": ""}


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
    for justify in ("left", "left", "right", "left", "left"):
        table.add_column(justify=justify, no_wrap=True)
    for section in sections(summary):
        _add(table, section)
    return table


def _add(table: Table, section: Section) -> None:
    table.add_row()
    dim = (Text(text, style="dim") for text in ("", "", f"ratio ({section.span})", "rounds"))
    table.add_row(Text(section.title, style="bold"), *dim)
    for row in section.rows:
        for texts in _lines(row, section):
            table.add_row(*texts)


def _lines(row: Row, section: Section) -> Iterator[tuple[Text, ...]]:
    """Yield a line for each figure: the arm stands in the first, what it lost in the last."""
    name = Text.assemble(row.arm, (f" {row.role}" if row.role else "", "dim"))
    last = len(row.entries) - 1
    for i, (figure, entry) in enumerate(zip(section.figures, row.entries, strict=True)):
        rounds = Text(row.rounds if i == 0 else "")
        if i == last and row.lost:
            rounds.append(f" {row.lost}".lstrip() if i else f" {row.lost}", "yellow")
        yield (
            name if i == 0 else Text(),
            Text(figure.heading),
            Text(entry.value),
            _ratio(entry),
            rounds,
        )


def _ratio(entry: Entry) -> Text:
    mark = "≈ " if entry.tone == "same" else ""
    span = f" ({entry.bounds})" if entry.bounds else ""
    return Text(f"{mark}{entry.ratio}{span}", style=STYLES[entry.tone])


def _caption(summary: Summary) -> Text:
    warning = caution(summary)
    text = Text(standing(summary).replace("`", ""))
    return text.append(f"\n{warning}", "bold red") if warning else text
