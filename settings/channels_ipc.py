"""The channel layer between the processes of one machine, with no server to run."""

import os

from settings.base import *  # noqa: F403

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_ipc.IPCChannelLayer",
        # None is the layer's own choice, which all processes of a user share.
        "CONFIG": {"directory": os.environ.get("CHANNELS_IPC_DIRECTORY") or None},
    }
}
