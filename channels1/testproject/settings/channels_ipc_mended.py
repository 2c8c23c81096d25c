"""asgi_ipc 1.1.0, mended as CHANNELS1_MENDED says: ``channels,semaphore``, or one of them."""

import os

from .channels_ipc import *  # noqa: F403
from .channels_ipc import CHANNEL_LAYERS, PREFIX

CHANNEL_LAYERS = {
    "default": dict(
        CHANNEL_LAYERS["default"],
        BACKEND="testproject.mended.MendedChannelLayer",
        CONFIG={"prefix": PREFIX, "mended": os.environ["CHANNELS1_MENDED"].split(",")},
    )
}
