"""Django over ASGI with one trip to a thread for each request.

Django's own ``ASGIHandler`` makes a thread for each request, and goes there and back for every hook
of every sync middleware, for a sync view and for the signals at either end. Where the middleware
or the views are sync, it is cheaper to go there once and do all of it, which is what this handler
does; everything else it inherits. It takes the place of ``get_asgi_application()``::

    django.setup()
    application = ProtocolTypeRouter({"http": OneHopHandler(), "websocket": ...})

What is different for an application: at most ``threads`` requests are in Django at a time (as in a
WSGI server with as many threads), and an async view runs in an event loop of its own thread's, so
keep ``get_asgi_application()`` for paths whose views wait a lot, and route to it with a
``URLRouter``. A client that goes away does not cancel its view.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started
from django.urls import set_script_prefix


class OneHopHandler(ASGIHandler):
    """An ASGI application; ``threads`` is how many requests it runs at a time."""

    def __init__(self, threads=4):
        BaseHandler.__init__(self)  # the inherited one loads the middleware as async
        self.load_middleware(is_async=False)
        self._threads = ThreadPoolExecutor(threads, "django")

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            raise ValueError(f"Django serves http, not {scope['type']}")
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            response = await self.in_thread(self.respond, scope, body)
            try:
                await self.send_response(response, send)
            finally:
                if response.streaming:
                    await self.in_thread(response.close)

    async def in_thread(self, function, *arguments):
        """Run ``function`` in one of the threads, with the context variables of this request."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, copy_context().run, function, *arguments)

    def respond(self, scope, body):
        """Return the response, closed if its content is at hand.

        Both signals are sent here, so that database connections are tidied up in the thread that
        they belong to.
        """
        set_script_prefix(get_script_prefix(scope))
        request_started.send(sender=type(self), scope=scope)
        request, response = self.create_request(scope, body)
        if request is not None:
            response = self.get_response(request)
        response._handler_class = type(self)
        if not response.streaming:
            response.close()
        return response
