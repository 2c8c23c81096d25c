"""The setups of 2016 as variants: how they are named, refused and put together."""

import pytest

from bench.environment import ROOT, configuration, environment
from bench.readiness import mismatches
from bench.variants import HEADLINE, VARIANTS, Variant

OF_2016 = [variant for variant in VARIANTS.values() if variant.stack != "today"]


def test_stack_has_the_three_setups_of_2016():
    for stack in ("channels1", "channels017"):
        names = [variant.name for variant in OF_2016 if variant.stack == stack]
        assert names == [f"{stack}-{today.name}" for today in HEADLINE]


@pytest.mark.parametrize(
    "factors",
    [
        {"server": "uvicorn", "layer": "redis"},
        {"server": "daphne", "layer": "inmemory"},
        {"server": "gunicorn", "processes": 4},
        {"server": "gunicorn", "middleware": "none"},
    ],
    ids=lambda factors: "-".join(map(str, factors.values())),
)
def test_stack_refuses_what_2016_did_not_have(factors):
    with pytest.raises(ValueError, match="the three setups of its load test"):
        Variant(**factors, stack="channels1")


def test_unknown_stack_names_the_nearest():
    with pytest.raises(ValueError, match="'channels2': did you mean channels1"):
        Variant("gunicorn", stack="channels2")


@pytest.mark.parametrize("variant", OF_2016, ids=lambda variant: variant.name)
def test_stack_runs_in_its_own_folder(variant):
    values = environment(variant)
    files = values["DEPLOY_FILES_FROM_BENCH_ENV"].split()
    programs = [name for name in files if "/programs/" in name and "redis" not in name]
    assert programs
    for name in programs:
        assert "directory = %(ENV_DEPLOY_ROOT)s/channels1\n" in (ROOT / name).read_text()


def test_daphne_of_2016_is_given_the_layer():
    text = configuration(VARIANTS["channels1-daphne-ipc"])["supervisord.conf"]
    assert "command = daphne testproject.asgi_for_ipc:channel_layer" in text
    assert "[program:segments]" in text
    assert "[program:redis]" not in text


def test_identity_of_today_is_not_that_of_2016():
    variant = VARIANTS["channels1-gunicorn"]
    told = {
        "server": "gunicorn",
        "interface": "wsgi",
        "layer": "none",
        "middleware": "stock",
        "settings": "testproject.settings.no_channels",
    }
    assert mismatches(variant, told) == ["stack is 'today' and should be 'channels1'"]
    assert mismatches(variant, told | {"stack": "channels1"}) == []
