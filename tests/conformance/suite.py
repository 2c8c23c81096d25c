"""The suite: every rule, in the order of the matrix."""

from .rules.capacity import Capacity, Expiry
from .rules.crossing import Crossing
from .rules.failures import Failures
from .rules.groups import Flush, Groups
from .rules.interface import Interface, Names
from .rules.loops import Loops
from .rules.messages import Delivery, Messages

SECTIONS = {
    "Interface": Interface,
    "Names": Names,
    "Messages": Messages,
    "Delivery": Delivery,
    "Capacity": Capacity,
    "Expiry": Expiry,
    "Groups": Groups,
    "Flush": Flush,
    "Threads and loops": Loops,
    "Several processes": Crossing,
    "Processes that die or stall": Failures,
}


class ChannelLayerConformance(*SECTIONS.values()):
    """Every rule for a channel layer. Subclass it, and say in ``subjects`` what to hold to them.

    ``tests/conformance/test_layers.py`` does so for four layers; ``docs/channel-layers.md`` shows
    it for one of your own.
    """
