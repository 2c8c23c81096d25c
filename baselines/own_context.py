"""asgiref's ``WsgiToAsgi``, each request in a context of its own.

The adapter (asgiref 3.13) leaves a dead executor in the context, and under uvicorn the next request
of a kept connection finds it: "CurrentThreadExecutor already quit or is broken".
"""

import asyncio
from contextvars import Context

from asgiref.wsgi import WsgiToAsgi


class OwnContext(WsgiToAsgi):
    async def __call__(self, scope, receive, send):
        answering = super().__call__(scope, receive, send)
        await asyncio.create_task(answering, context=Context())
