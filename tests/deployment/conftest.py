"""Variants that really run, under the project's own supervisord, one after the other."""

import os
import shutil

import pytest

from bench.environment import executables
from bench.supervise import BIN, deployed, remedy
from bench.variants import LAYERS, VARIANTS


def pytest_runtest_setup(item):
    """Skip, and say so, what needs a Redis server where there is none."""
    if item.get_closest_marker("redis") and shutil.which("redis-server") is None:
        pytest.skip("redis-server is missing: apt-get install redis-server")


def parameter(variant):
    marks = [pytest.mark.redis] if LAYERS[variant.layer].service == "redis" else []
    return pytest.param(variant, marks=marks, id=variant.name)


TODAY = [parameter(variant) for variant in VARIANTS.values() if variant.stack == "today"]


@pytest.fixture(scope="session")
def installed():
    """Skip, and say so, what needs a program of a variant that is not on this machine."""

    def require(variant):
        path = f"{BIN}:{os.environ['PATH']}:/usr/sbin"
        for program in executables(variant):
            if shutil.which(program, path=path) is None:
                pytest.skip(f"{program} is missing: {remedy(program)}")
        return variant

    return require


@pytest.fixture(scope="module", params=TODAY)
def deployment(request, installed):
    """Each variant in turn, ready; all tests of a module see it before the next one starts."""
    with deployed(installed(request.param)) as running:
        yield running
