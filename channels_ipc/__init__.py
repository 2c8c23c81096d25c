"""An inter-process channel layer for Django Channels: one machine, no server.

``CHANNEL_LAYERS = {"default": {"BACKEND": "channels_ipc.IPCChannelLayer"}}``
"""

from channels_ipc.errors import IPCError
from channels_ipc.layer import IPCChannelLayer

__all__ = ["IPCChannelLayer", "IPCError"]
