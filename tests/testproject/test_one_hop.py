"""Django entered once: it must do all that Django's own ASGI handler does for a request."""

import contextvars
import threading

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.signals import request_finished, request_started
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

from testproject.one_hop import OneHopHandler

carried = contextvars.ContextVar("carried", default=None)
seen = {}


def note(request):
    seen.update(thread=threading.get_ident(), carried=carried.get(), body=request.body)
    return HttpResponse(request.GET.get("name", "nobody"), headers={"X-Path": request.path})


def stream(request):
    return StreamingHttpResponse(iter([b"one ", b"two"]))


async def waits(request):
    return HttpResponse(b"async")


def breaks(request):
    raise RuntimeError("a view that breaks")


urlpatterns = [
    path("note/", note),
    path("stream/", stream),
    path("async/", waits),
    path("breaks/", breaks),
]


@pytest.fixture(autouse=True)
def urls(settings):
    settings.ROOT_URLCONF = __name__
    seen.clear()


@pytest.fixture
def handler():
    made = OneHopHandler(threads=2)
    yield made
    made._threads.shutdown()


async def ask(handler, target, *messages, method="GET", root_path=""):
    """Return status, headers and body of the reply."""
    address, _, query = target.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": root_path + address,
        "root_path": root_path,
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost")],
    }
    peer = ApplicationCommunicator(handler, scope)
    for message in messages or ({"type": "http.request", "body": b""},):
        await peer.send_input(message)
    start, body = await peer.receive_output(5), b""
    more = True
    while more:
        part = await peer.receive_output(5)
        body, more = body + part.get("body", b""), part.get("more_body", False)
    await peer.wait(5)
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, body


async def test_request_is_answered_with_what_the_middleware_adds(handler):
    status, headers, body = await ask(handler, "/note/?name=Ada")
    assert (status, body, headers["x-path"]) == (200, b"Ada", "/note/")
    assert headers["x-frame-options"] == "DENY"


async def test_body_in_parts_arrives_whole(handler, settings):
    settings.MIDDLEWARE = []
    parts = (
        {"type": "http.request", "body": b"first ", "more_body": True},
        {"type": "http.request", "body": b"second"},
    )
    await ask(OneHopHandler(), "/note/", *parts, method="POST")
    assert seen["body"] == b"first second"


async def test_view_and_signals_share_a_thread_that_is_not_the_event_loops(handler):
    """Database connections are a thread's own: what tidies them up must run where they are."""
    threads = []

    def keep(**_):
        threads.append(threading.get_ident())

    request_started.connect(keep)
    request_finished.connect(keep)
    try:
        await ask(handler, "/note/")
    finally:
        request_started.disconnect(keep)
        request_finished.disconnect(keep)
    assert threads == [seen["thread"]] * 2
    assert threading.get_ident() not in threads


async def test_streamed_response_is_finished_after_its_last_part(handler):
    finished = []

    def keep(**_):
        finished.append(True)

    request_finished.connect(keep)
    try:
        with pytest.warns(Warning, match="synchronous iterators"):
            status, _, body = await ask(handler, "/stream/")
    finally:
        request_finished.disconnect(keep)
    assert (status, body, finished) == (200, b"one two", [True])


async def test_async_view_is_run_too(handler):
    assert (await ask(handler, "/async/"))[2] == b"async"


async def test_context_variables_set_around_it_reach_the_view(handler):
    async def around(scope, receive, send):
        carried.set("from outside")
        await handler(scope, receive, send)

    await ask(around, "/note/")
    assert seen["carried"] == "from outside"


async def test_view_that_breaks_is_an_error_page_and_not_the_end(handler, caplog):
    assert (await ask(handler, "/breaks/"))[0] == 500
    assert "a view that breaks" in caplog.text
    assert (await ask(handler, "/note/"))[0] == 200


async def test_mounted_below_a_path_it_knows_its_prefix(handler):
    _, headers, _ = await ask(handler, "/note/", root_path="/below")
    assert headers["x-path"] == "/below/note/"


async def test_client_that_leaves_before_its_request_is_whole_runs_nothing(handler):
    peer = ApplicationCommunicator(
        handler,
        {"type": "http", "method": "GET", "path": "/note/", "query_string": b"", "headers": []},
    )
    await peer.send_input({"type": "http.disconnect"})
    await peer.wait(5)
    assert seen == {}


async def test_anything_but_http_is_refused(handler):
    peer = ApplicationCommunicator(handler, {"type": "websocket", "path": "/note/"})
    with pytest.raises(ValueError, match="not websocket"):
        await peer.wait(5)
