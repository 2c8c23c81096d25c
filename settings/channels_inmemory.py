"""The channel layer in the server's own memory: one process, and no worker can reach it."""

import fnmatch
import re

from settings.base import *  # noqa: F403
from settings.base import CHANNEL_CAPACITY

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels.layers.InMemoryChannelLayer",
        # This layer stops at the documented dict: it takes what the others make of one.
        "CONFIG": {
            "channel_capacity": [
                (re.compile(fnmatch.translate(pattern)), capacity)
                for pattern, capacity in CHANNEL_CAPACITY.items()
            ]
        },
    }
}
