"""The project over ASGI, with Django entered in one of several ways: ``BASELINE_HANDLER``.

``stock``          what ``get_asgi_application()`` gives
``shared_thread``  the same, without a thread made for each request: one for all
``wsgi_to_asgi``   asgiref's adapter around Django's WSGI application, made safe: ``own_context.py``
``one_hop``        one trip to a thread for each request; ``one_hop_1``: to a single thread
``in_loop``        no trip at all: blocks the event loop, so it is a lower bound and no advice
"""

import os

import django
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.core.handlers.asgi import ASGIHandler
from django.core.wsgi import get_wsgi_application
from django.urls import re_path

django.setup()

from baselines.own_context import OwnContext  # noqa: E402 - Django must be set up
from testproject.lifespan import lifespan  # noqa: E402
from testproject.one_hop import OneHopHandler  # noqa: E402
from testproject.routing import http_routes  # noqa: E402


class SharedThread(ASGIHandler):
    async def __call__(self, scope, receive, send):
        await self.handle(scope, receive, send)


class InLoop(OneHopHandler):
    async def in_thread(self, function, *arguments):
        return function(*arguments)


HANDLERS = {
    "stock": get_asgi_application,
    "shared_thread": SharedThread,
    "wsgi_to_asgi": lambda: OwnContext(get_wsgi_application()),
    "one_hop": OneHopHandler,
    "one_hop_1": lambda: OneHopHandler(threads=1),
    "in_loop": InLoop,
}

handler = HANDLERS[os.environ["BASELINE_HANDLER"]]()
application = ProtocolTypeRouter(
    {"http": URLRouter([*http_routes, re_path(r"", handler)]), "lifespan": lifespan}
)
