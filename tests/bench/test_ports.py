from collections import Counter

from bench import ports
from bench.variants import VARIANTS


def test_no_two_programs_share_a_port():
    single = {
        name: value
        for name, value in vars(ports).items()
        if name.isupper() and isinstance(value, int) and name != "APPLICATION_FIRST"
    }
    several = {
        f"one of {variant.name}": port
        for variant in VARIANTS.values()
        if variant.sharing == "ports"
        for port in ports.application(variant)
    }
    users = Counter([*single.values(), *set(several.values())])
    assert [port for port, count in users.items() if count > 1] == []
