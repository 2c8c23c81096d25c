"""The views: what Django serves, over WSGI and over ASGI alike."""

import hashlib

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from channels_hub import hub
from testproject import relay
from testproject.identity import client, identity

TABLE = [[f"{row},{column}" for column in range(4)] for row in range(6)]
ITEMS = frozenset(range(1_000))
LOOKUPS = 50_000


@require_safe
def hello(request: HttpRequest) -> HttpResponse:
    """The endpoint of the test of 2016.

    The length is given here because only some middleware and some servers add it.
    """
    return HttpResponse(b"OK", content_type="text/plain", headers={"Content-Length": "2"})


@require_safe
def render_name(request: HttpRequest) -> HttpResponse:
    """Renders a name into a page."""
    return render(request, "testproject/name.html", {"name": request.GET.get("name", "World")})


@require_safe
def render_table(request: HttpRequest) -> HttpResponse:
    """Renders a table of six rows and four columns."""
    return render(request, "testproject/table.html", {"table": TABLE})


@require_safe
def render_twice(request: HttpRequest) -> HttpResponse:
    """Renders the same template twice."""
    once, again = (
        render_to_string("testproject/table.html", {"table": TABLE}, request) for _ in range(2)
    )
    return HttpResponse(once + again)


@require_safe
def lookup(request: HttpRequest) -> HttpResponse:
    """Looks 50,000 keys up in a set of 1,000 items, half of them in vain."""
    found = sum(key % (2 * len(ITEMS)) in ITEMS for key in range(LOOKUPS))
    return HttpResponse(str(found), content_type="text/plain")


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Says who serves; a correct answer is also what "ready" means."""
    answer = identity(request) | {"relay": relay.counters(), "client": client(request)}
    answer["hub"] = hub.counters()
    return JsonResponse(answer, headers={"Cache-Control": "no-store"})


@csrf_exempt
@require_POST
def digest(request: HttpRequest) -> JsonResponse:
    """Says what came: the length of the request's body, of any size, and its SHA-256."""
    found, length = hashlib.sha256(), 0
    while part := request.read(65536):
        found.update(part)
        length += len(part)
    return JsonResponse({"bytes": length, "sha256": found.hexdigest()})


@require_safe
def smoke(request: HttpRequest) -> HttpResponse:
    """A page that shows whether a deployment's WebSocket path works."""
    return render(request, "testproject/smoke.html")


@require_safe
def topics(request: HttpRequest) -> HttpResponse:
    """A page that draws the live feed of /ws/topics/ and its latency."""
    return render(request, "testproject/topics.html")


def channels_only(request: HttpRequest, **kwargs: str) -> HttpResponse:
    """Says why a path that Channels serves is not served: over ASGI it never comes here."""
    return HttpResponse(
        "This path is a Channels consumer, and this server speaks WSGI. "
        "Deploy one of the ASGI entry points.\n",
        status=501,
        content_type="text/plain",
    )


def websocket_only(request: HttpRequest, **kwargs: str) -> HttpResponse:
    """Answers HTTP on a WebSocket's path.

    A handshake comes here over WSGI only, which has no sockets; anything else forgot to ask for
    one.
    """
    if request.headers.get("Upgrade", "").lower() == "websocket":
        return channels_only(request)
    return HttpResponse(
        "This path speaks WebSocket.\n",
        status=426,
        content_type="text/plain",
        headers={"Upgrade": "websocket"},
    )
