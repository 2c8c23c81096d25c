"""The pictures of a report: files beside its page, for light and dark paper, and their Markdown."""

from collections.abc import Iterable
from pathlib import Path

from bench.theme import DARK, LIGHT, Drawing, png, svg


def draw(drawings: Iterable[Drawing], folder: Path) -> None:
    """Write ``drawings`` into ``folder``, in place of those that an earlier report has left."""
    folder.mkdir(exist_ok=True)
    for stale in (*folder.glob("*.png"), *folder.glob("*.svg")):
        stale.unlink()
    for drawing in drawings:
        (folder / f"{drawing.name}.png").write_bytes(png(drawing, LIGHT))
        (folder / f"{drawing.name}.svg").write_text(svg(drawing, LIGHT))
        (folder / f"{drawing.name}-dark.svg").write_text(svg(drawing, DARK))


def write_page(page: str, drawings: Iterable[Drawing], folder: Path) -> None:
    """Write the ``page`` of a study into ``folder``, with its pictures beside it."""
    draw(drawings, folder)
    (folder / "README.md").write_text(page)


def shown(drawing: Drawing, prefix: str = "") -> str:
    """Return the Markdown that shows ``drawing``; ``prefix`` leads from the page to its folder."""
    path = f"{prefix}{drawing.name}"
    return (
        "<picture>\n"
        f'<source media="(prefers-color-scheme: dark)" srcset="{path}-dark.svg">\n'
        f'<img alt="{drawing.title}. {drawing.note}" src="{path}.svg">\n'
        "</picture>\n"
    )
