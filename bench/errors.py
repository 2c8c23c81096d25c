"""The errors that a person using the command line can put right."""

from collections.abc import Iterable
from difflib import get_close_matches


class BadInput(ValueError):  # noqa: N818 - it says what is wrong, not that something is
    """What was asked for cannot be done as asked; the text names the input and the remedy.

    The command line prints it as one line and exits with 2.
    """


def unknown(kind: str, name: str, valid: Iterable[str]) -> BadInput:
    """Return the error for a ``name`` that is none of ``valid``, with the nearest of those."""
    names = sorted(valid)
    near = get_close_matches(name, names, n=3, cutoff=0.4) or names
    return BadInput(f"unknown {kind} {name!r}: did you mean {' or '.join(near)}?")
