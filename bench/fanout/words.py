"""How a figure of a fan-out campaign is written."""

from bench.spreads import Ratio, Spread


def ranged(found: Spread | None) -> str:
    if found is None:
        return "missing"
    return f"{found.median:,.0f} ({found.low:,.0f} to {found.high:,.0f})"


def number(found: Spread | None, scale: float = 1.0) -> str:
    return "missing" if found is None else f"{found.median * scale:,.1f}"


def interval(found: Ratio) -> str:
    """Return a ratio with its interval, in a sentence; it has one."""
    assert found.interval is not None
    low, high = found.interval.low, found.interval.high
    return f"**{found.estimate:.3g} times** (95 % interval {low:.3g} to {high:.3g})"
