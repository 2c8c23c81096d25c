"""The channel layer in the server's own memory: one process, and no worker can reach it."""

from settings.base import *  # noqa: F403

CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
