"""The largest load that holds, found by doubling and then by halving what is left."""

from collections.abc import Callable

STEPS = 3  # of halving: the answer is known to an eighth of the last doubling


def largest(holds: Callable[[int], bool], first: int, most: int) -> tuple[int | None, int | None]:
    """Return the largest load seen to hold and the smallest seen not to; None where none was.

    ``holds`` is asked at ``first``, then at twice as much and so on up to ``most``, and then
    between the last two.
    """
    held: int | None = None
    failed: int | None = None
    load = first
    while load <= most and holds(load):
        held, load = load, load * 2
    if load <= most:
        failed = load
    for _ in range(STEPS):
        if held is None or failed is None or failed - held < 2:
            break
        middle = (held + failed) // 2
        if holds(middle):
            held = middle
        else:
            failed = middle
    return held, failed
