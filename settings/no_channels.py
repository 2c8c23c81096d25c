"""No channel layer: Django over WSGI, the control."""

from settings.base import *  # noqa: F403
