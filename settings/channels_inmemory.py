"""The channel layer in the server's own memory: one process, and no worker can reach it."""

from settings.base import *  # noqa: F403
from settings.base import HUB_CAPACITY

CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels.layers.InMemoryChannelLayer"},
    "hub": {
        "BACKEND": "channels.layers.InMemoryChannelLayer",
        "CONFIG": {"capacity": HUB_CAPACITY},
    },
}
