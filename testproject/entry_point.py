"""How an entry point gets its settings: its own, or it does not start.

Measuring Redis while believing to measure something else is one stray variable away, so an entry
point never yields to a ``DJANGO_SETTINGS_MODULE`` that names another one's settings.
"""

import os
from collections.abc import Callable, MutableMapping
from typing import Any

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

VARIABLE = "DJANGO_SETTINGS_MODULE"


def asgi_application(settings_module: str) -> Callable[..., Any]:
    """Return the ASGI application under ``settings_module``."""
    claim(os.environ, settings_module)
    django.setup()
    # Consumers import models, and models need Django set up.
    from testproject.application import application

    return application


def wsgi_application(settings_module: str) -> Callable[..., Any]:
    """Return the WSGI application under ``settings_module``."""
    claim(os.environ, settings_module)
    return get_wsgi_application()


def claim(environ: MutableMapping[str, str], settings_module: str) -> None:
    """Set the settings module in ``environ``; raise ``ImproperlyConfigured`` if it is another."""
    given = environ.get(VARIABLE)
    if given and given != settings_module:
        raise ImproperlyConfigured(
            f"this entry point runs {settings_module}, but {VARIABLE} is {given}: unset it, "
            f"or start the entry point that belongs to {given}"
        )
    environ[VARIABLE] = settings_module
