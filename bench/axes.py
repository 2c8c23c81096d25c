"""Where ticks and labels go."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10


def log_ticks(low: float, high: float) -> list[float]:
    """Return the 1, 2 and 5 of each decade from ``low`` to ``high``; only the 1 of many decades."""
    first, last = floor(log10(low)), ceil(log10(high))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    ticks = [round(step * 10.0**decade, 9) for decade in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def spread_apart(
    ends: Mapping[str, float], *, share: float, span: tuple[float, float], log: bool = False
) -> dict[str, float]:
    """Return where to put the label of each line so that none covers another.

    A label takes ``share`` of the axis, which spans ``span``; ``log`` says that the axis is
    logarithmic. Labels that would collide spread around their common middle, in the order of
    their lines.
    """
    low, high = (log10(span[0]), log10(span[1])) if log else span
    gap = share * (high - low)
    names = sorted(ends, key=lambda name: ends[name])
    wanted = [log10(ends[name]) if log else ends[name] for name in names]
    # With the gaps taken out, "at least a gap apart" becomes "not falling".
    level = _not_falling([place - i * gap for i, place in enumerate(wanted)])
    places = [place + i * gap for i, place in enumerate(level)]
    return {name: 10**at if log else at for name, at in zip(names, places, strict=True)}


def _not_falling(values: Sequence[float]) -> list[float]:
    """Return the nearest values, by least squares, of which none is below the one before it."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, count = value, 1
        while pools and pools[-1][0] > mean:
            before, size = pools.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        pools.append((mean, count))
    return [mean for mean, count in pools for _ in range(count)]


def padded(values: list[float], share: float = 0.06) -> tuple[float, float]:
    """Return the range of positive ``values`` on a logarithmic axis, with room at either end."""
    low, high = log10(min(values)), log10(max(values))
    room = share * (high - low) or 0.1
    return 10 ** (low - room), 10 ** (high + room)
