"""What the suite is pointed at: a channel layer, and what is already known of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass(frozen=True)
class Subject:
    """A channel layer under test, with the two values that CHANNEL_LAYERS gives it.

    ``breaks`` maps the name of a rule's test to the reason why this layer breaks that rule. Such a
    test must fail: one that passes after all fails the run, so that the reasons stay true.
    ``shortest_expiry_s`` is the least that the layer keeps to: rules about time wait longer.
    ``crosses_processes=False`` makes the rules about several processes "not applicable".
    """

    name: str
    backend: str
    config: Mapping[str, Any] = field(default_factory=dict)
    breaks: Mapping[str, str] = field(default_factory=dict)
    shortest_expiry_s: float = 1
    crosses_processes: bool = True
    marks: tuple[pytest.MarkDecorator, ...] = ()
