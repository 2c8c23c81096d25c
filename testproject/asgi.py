"""Django and Channels over ASGI, with the channel layer in Redis."""

from testproject.entry_point import asgi_application

application = asgi_application("settings.channels_redis")
