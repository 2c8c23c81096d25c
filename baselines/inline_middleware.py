"""Django's stock middleware without its trips to a thread.

Over ASGI, Django runs each hook of a sync middleware in a thread, since it might wait for a
database. These hooks do not: sessions travel in their cookie here, and ``request.user`` is not
looked up before somebody asks. So they may run where the request is, in the event loop. With
sessions in a database this would be wrong, and Django would say so (SynchronousOnlyOperation).
"""

from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.middleware import clickjacking, common, csrf, security


class Inline:
    """Goes before a middleware's own class."""

    async def __acall__(self, request):
        response = None
        if hasattr(self, "process_request"):
            response = self.process_request(request)
        response = response or await self.get_response(request)
        if hasattr(self, "process_response"):
            response = self.process_response(request, response)
        return response


class SecurityMiddleware(Inline, security.SecurityMiddleware):
    pass


class SessionMiddleware(Inline, sessions.SessionMiddleware):
    pass


class CommonMiddleware(Inline, common.CommonMiddleware):
    pass


class CsrfViewMiddleware(Inline, csrf.CsrfViewMiddleware):
    async def process_view(self, request, *view):
        return super().process_view(request, *view)


class AuthenticationMiddleware(Inline, auth.AuthenticationMiddleware):
    pass


class MessageMiddleware(Inline, messages.MessageMiddleware):
    pass


class XFrameOptionsMiddleware(Inline, clickjacking.XFrameOptionsMiddleware):
    pass
