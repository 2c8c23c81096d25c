"""Django and Channels over ASGI, with the channel layer in memory: one process only."""

from testproject.entry_point import asgi_application

application = asgi_application("settings.channels_inmemory")
