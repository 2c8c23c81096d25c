"""The table of deployments: names, and combinations that cannot be."""

import pytest

from bench.errors import BadInput
from bench.variants import HEADLINE, LAYERS, VARIANTS, Variant, resolve


def test_name_is_built_from_the_factors_that_are_not_at_their_default():
    assert Variant("gunicorn").name == "gunicorn"
    assert Variant("daphne", "ipc").name == "daphne-ipc"
    assert Variant("gunicorn_asgi", "redis", processes=4).name == "gunicorn-asgi-redis-x4"
    assert Variant("uvicorn", "ipc", middleware="none").name == "uvicorn-ipc-no_middleware"
    assert Variant("daphne", "ipc", handler="one_hop").name == "daphne-ipc-one_hop"


def test_table_has_every_variant_under_its_own_name():
    assert all(name == variant.name for name, variant in VARIANTS.items())
    assert [variant.name for variant in HEADLINE] == ["gunicorn", "daphne-redis", "daphne-ipc"]


@pytest.mark.parametrize("layer", [name for name, one in LAYERS.items() if one.crosses_processes])
def test_table_has_four_processes_of_every_layer_that_crosses_them(layer):
    servers = {one.server for one in VARIANTS.values() if one.layer == layer}
    assert servers
    assert {Variant(server, layer, processes=4).name for server in servers} <= set(VARIANTS)


@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        ({"server": "gunicorn", "layer": "redis"}, "no use for a channel layer"),
        ({"server": "daphne"}, "each belong to a channel layer"),
        ({"server": "daphne", "layer": "inmemory", "processes": 4}, "does not cross processes"),
        ({"server": "gunicorn", "processes": 0}, "0 processes"),
        ({"server": "gunicorn", "middleware": "some"}, "unknown middleware"),
        ({"server": "daphne", "layer": "ipc", "handler": "two_hop"}, "unknown handler"),
        ({"server": "gunicorn", "handler": "one_hop"}, "only today's ASGI servers"),
        (
            {"server": "daphne", "layer": "ipc", "handler": "one_hop", "stack": "channels1"},
            "only today's ASGI servers",
        ),
        ({"server": "dafne", "layer": "ipc"}, "did you mean daphne"),
        ({"server": "daphne", "layer": "ipcc"}, "did you mean ipc"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_variant_of_factors_that_cannot_go_together_is_refused(factors, reason):
    with pytest.raises(ValueError, match=reason):
        Variant(**factors)


def test_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(BadInput, match=r"'dafne-ipc': did you mean daphne-ipc"):
        resolve("dafne-ipc")


def test_workers_are_as_many_as_processes_where_the_layer_gives_each_message_to_one():
    assert Variant("daphne", "ipc", processes=4).workers == 4
    assert Variant("daphne", "redis", processes=4).workers == 1
    assert Variant("daphne", "redis_pubsub", processes=4).workers == 1
    assert Variant("daphne", "inmemory").workers == 0
    assert Variant("gunicorn").workers == 0
