"""The channel layer between the processes of one machine, with no server to run."""

from settings.base import *  # noqa: F403

CHANNEL_LAYERS = {"default": {"BACKEND": "channels_ipc.IPCChannelLayer"}}
