"""The project's paths, and the view of ``/`` once more as an async one."""

from django.http import HttpResponse
from django.urls import path

from testproject.urls import urlpatterns as project


async def hello(request):
    return HttpResponse(b"OK", content_type="text/plain", headers={"Content-Length": "2"})


urlpatterns = [path("async/", hello), *project]
