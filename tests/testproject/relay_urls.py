"""Views for the tests that look at what crosses the relay."""

import base64
import os
import signal
import time

from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from testproject.urls import urlpatterns as project


@csrf_exempt
def mirror(request, rest):
    """Everything that a view can see of its request."""
    return JsonResponse(
        {
            "method": request.method,
            "path": request.path,
            "path_info": request.path_info,
            "query": request.META["QUERY_STRING"],
            "headers": dict(request.headers),
            "body": base64.b64encode(request.body).decode(),
            "address": request.META["REMOTE_ADDR"],
            "pid": os.getpid(),
        },
        status=201,
        headers={"X-Mirror": "yes"},
    )


def big(request):
    return HttpResponse(b"x" * int(request.GET["bytes"]), content_type="application/octet-stream")


def cookies(request):
    response = HttpResponseRedirect("/elsewhere/")
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")
    return response


def slow(request):
    time.sleep(float(request.GET["seconds"]))
    return HttpResponse("done")


def broken(request):
    raise RuntimeError("as asked for")


def stop(request):
    """Stall the worker, as a debugger or a frozen container would."""
    os.kill(os.getpid(), signal.SIGSTOP)


urlpatterns = [
    *project,
    path("mirror/<path:rest>", mirror),
    path("big/", big),
    path("cookies/", cookies),
    path("slow/", slow),
    path("broken/", broken),
    path("stop/", stop),
]
