"""Django and Channels over ASGI, with the channel layer on Redis' publish and subscribe."""

from testproject.entry_point import asgi_application

application = asgi_application("settings.channels_redis_pubsub")
