"""Variants that really run, under the project's own supervisord, one after the other."""

import pytest

from bench.supervise import deployed
from bench.variants import VARIANTS

TODAY = [variant for variant in VARIANTS.values() if variant.stack == "today"]


@pytest.fixture(scope="module", params=TODAY, ids=lambda variant: variant.name)
def deployment(request):
    """Each variant in turn, ready; all tests of a module see it before the next one starts."""
    with deployed(request.param) as running:
        yield running
