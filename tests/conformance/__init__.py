"""One suite for any channel layer. ``docs/channel-layers.md`` shows how to use it."""

import pytest

_RULES = ("capacity", "crossing", "failures", "groups", "interface", "loops", "messages")
pytest.register_assert_rewrite(*(f"{__name__}.rules.{module}" for module in _RULES))

from .subject import Subject  # noqa: E402 - asserts are rewritten only in what comes after
from .suite import ChannelLayerConformance  # noqa: E402

__all__ = ["ChannelLayerConformance", "Subject"]
