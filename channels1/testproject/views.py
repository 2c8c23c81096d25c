from django.http import HttpResponse, JsonResponse

from .identity import identity


def index(request):
    """The endpoint of the test, with the same headers as today's."""
    response = HttpResponse(b"OK", content_type="text/plain")
    response["Content-Length"] = "2"
    return response


def healthz(request):
    return JsonResponse(identity(request))
