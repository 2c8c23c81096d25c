"""Django over WSGI, without Channels: the control."""

from testproject.entry_point import wsgi_application

application = wsgi_application("settings.no_channels")
