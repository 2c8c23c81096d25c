"""The table of options in docs/load-driver.md is made from the options.

python tests/locustfiles/test_documentation.py      writes it anew
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from locustfiles.driver.options import HTTP, WEBSOCKET  # noqa: E402

PAGE = ROOT / "docs" / "load-driver.md"
BEGIN = "<!-- options: written by tests/locustfiles/test_documentation.py -->\n"
END = "<!-- end of options -->\n"


def table() -> str:
    """Return the options of both files, as Markdown."""
    rows = ["| option | default | for | what it says |", "|---|---|---|---|"]
    both = set(HTTP) & set(WEBSOCKET)
    for option in (*HTTP, *(each for each in WEBSOCKET if each not in both)):
        file = "both" if option in both else "`http.py`" if option in HTTP else "`websocket.py`"
        default = f"`{option.default}`" if option.default != "" else ""
        rows.append(f"| `{option.flag}` | {default} | {file} | {option.help} |")
    return "\n".join(rows) + "\n"


def rewritten(page: str) -> str:
    head, rest = page.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END)[1]


def test_page_has_the_options_as_they_are():
    page = PAGE.read_text()
    assert rewritten(page) == page


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
