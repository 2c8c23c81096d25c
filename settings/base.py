"""What every deployment has in common.

An overlay beside this file adds the channel layer and nothing else, so that two deployments with
different layers differ in that one factor. What a machine decides comes from the environment:

``DJANGO_SECRET_KEY``       give one wherever more than one process serves; random otherwise
``DJANGO_ALLOWED_HOSTS``    comma separated; loopback names otherwise
``TESTPROJECT_MIDDLEWARE``  ``stock`` (what ``startproject`` writes) or ``none``
``TESTPROJECT_HANDLER``     ``django`` or ``one_hop``: how ASGI servers enter Django
``TESTPROJECT_DELIVERY``    ``hub`` or ``group``: how topics reach their subscribers
"""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key


def chosen(variable: str, names: tuple[str, ...]) -> str:
    """Return the one of ``names`` that the environment's ``variable`` holds, or else the first."""
    name = os.environ.get(variable, names[0])
    if name not in names:
        raise ImproperlyConfigured(f"{variable}={name!r} is not one of {', '.join(names)}")
    return name


BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = False
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or get_random_secret_key()
ALLOWED_HOSTS = (os.environ.get("DJANGO_ALLOWED_HOSTS") or "localhost,127.0.0.1,[::1]").split(",")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "channels",
    "testproject",
]

# Over ASGI the middleware decides the result: each of Django's is sync, and each costs a thread
# hop a request. So the choice has a name, and a deployment says which one it runs.
MIDDLEWARE_SETS = {
    "stock": [
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
    "none": [],
}
MIDDLEWARE = MIDDLEWARE_SETS[chosen("TESTPROJECT_MIDDLEWARE", tuple(MIDDLEWARE_SETS))]

# Django's own ASGI handler goes to a thread and back for every sync middleware and view; the other
# goes there once a request.
HANDLER = chosen("TESTPROJECT_HANDLER", ("django", "one_hop"))

# How a published message gets to the sockets of a process: once for all of them, through the
# process's hub, or once for each of them, which is what group_send does by itself.
DELIVERY = chosen("TESTPROJECT_DELIVERY", ("hub", "group"))

# Hubs have a channel layer of their own, with the same backend: a hub's channel carries what a
# whole process is due, and the usual 100 messages are a few milliseconds of that.
HUB_CAPACITY = 8_192

ROOT_URLCONF = "testproject.urls"
ASGI_APPLICATION = "testproject.application.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "testproject" / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Nothing here is stored: the endpoints need no database, and sessions travel in their cookie.
DATABASES = {}
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

# X-Forwarded-* is anybody's to send. A deployment whose proxy overwrites them may set
# SECURE_PROXY_SSL_HEADER and USE_X_FORWARDED_HOST; by default nothing is trusted.
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SILENCED_SYSTEM_CHECKS = [
    "security.W004",  # HSTS and ...
    "security.W008",  # ... the redirect to HTTPS belong where TLS ends, which is not here
]

# One line for what went wrong, and none for a request that went well.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}

# How long a relayed request waits for a worker before it is answered with 504, in seconds. Below
# the 5 s after which Daphne gives up on a handshake without telling anybody why.
RELAY_TIMEOUT_S = 4.0
