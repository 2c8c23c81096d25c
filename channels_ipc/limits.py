"""How much may wait where, what the layer's settings come to, and when what has ended goes."""

from collections.abc import Callable
from dataclasses import dataclass

MESSAGES = 4  # of the largest size, that one place may hold in files
SWEEP_S = 10.0  # how often, at most, all that has ended is looked for; only ever while in use


@dataclass(frozen=True)
class Limits:
    """``capacity`` is the largest of any channel; ``expiry_s`` the life of a message."""

    capacity: int
    capacity_of: Callable[[str], int]
    message_bytes: int
    expiry_s: float

    @property
    def spool_bytes(self) -> int:
        """Return what may wait in files for one process, or in one named channel."""
        return MESSAGES * self.message_bytes
