"""Django and Channels over ASGI, with the inter-process channel layer."""

from testproject.entry_point import asgi_application

application = asgi_application("settings.channels_ipc")
