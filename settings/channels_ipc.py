"""The channel layer between the processes of one machine, with no server to run."""

import os

from settings.base import *  # noqa: F403
from settings.base import HUB_CAPACITY

# None is the layer's own choice, which all processes of a user share.
directory = os.environ.get("CHANNELS_IPC_DIRECTORY") or None

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_ipc.IPCChannelLayer",
        "CONFIG": {"directory": directory},
    },
    "hub": {
        "BACKEND": "channels_ipc.IPCChannelLayer",
        "CONFIG": {"directory": directory, "capacity": HUB_CAPACITY},
    },
}
