"""Numbers in what tools print."""

import re

from bench.tools.tool import Unreadable

_IN_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


def number(pattern: str, text: str) -> float:
    """Return the number in the first group of ``pattern``; raise ``Unreadable`` without one."""
    found = optional(pattern, text)
    if found is None:
        lines = text.strip().splitlines() or ["nothing"]
        raise Unreadable(f"no {pattern!r} in its output, which ends with {lines[-1]!r}")
    return found


def optional(pattern: str, text: str) -> float | None:
    """Return the number in the first group of ``pattern``; None where it does not occur."""
    found = re.search(pattern, text, re.MULTILINE)
    return float(found[1]) if found else None


def whole(pattern: str, text: str) -> int:
    """Return a count that is left out where it is 0."""
    return int(optional(pattern, text) or 0)


def milliseconds(pattern: str, text: str) -> float | None:
    """Return a duration such as ``1.21ms`` or ``580.09us``; None where it does not occur."""
    found = re.search(pattern + r"\s*([\d.]+)(us|ms|s|m)\b", text, re.MULTILINE)
    return float(found[1]) * _IN_MS[found[2]] if found else None
