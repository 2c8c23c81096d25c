"""A request and its response as plain values, there and back."""

import msgpack
import pytest
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse

from testproject import http_message

SCOPE = {
    "type": "http",
    "method": "GET",
    "http_version": "1.1",
    "path": "/relay/",
    "query_string": b"",
    "headers": [(b"host", b"testserver")],
    "client": ("192.0.2.1", 5000),
    "server": ("192.0.2.2", 8000),
    "scheme": "http",
    "app": object(),  # some servers put what cannot cross into the scope
}


def environ(body=b"", **scope):
    """The environment of a request that has crossed a layer with msgpack as its wire format."""
    message = http_message.request_message({**SCOPE, **scope}, "/relay", body)
    return http_message.environ(msgpack.unpackb(msgpack.packb(message)))


def test_environ_sees_the_request_below_its_mount():
    found = environ(path="/relay/some/path", root_path="")
    assert (found["SCRIPT_NAME"], found["PATH_INFO"]) == ("/relay", "/some/path")


def test_environ_keeps_the_root_path_of_the_server():
    found = environ(path="/site/relay/x", root_path="/site")
    assert (found["SCRIPT_NAME"], found["PATH_INFO"]) == ("/site/relay", "/x")


def test_environ_has_the_utf8_bytes_of_the_path_as_characters():
    found = environ(path="/relay/é€")
    assert found["PATH_INFO"].encode("latin-1") == "/é€".encode()


def test_environ_keeps_every_byte_of_the_query_and_the_body():
    every = bytes(range(256))
    found = environ(body=every, query_string=every)
    assert found["QUERY_STRING"].encode("latin-1") == every
    assert found["wsgi.input"].read() == every
    assert found["CONTENT_LENGTH"] == "256"


def test_environ_joins_repeated_headers_and_cookies_each_in_their_way():
    headers = [(b"accept", b"a"), (b"accept", b"b"), (b"cookie", b"a=1"), (b"cookie", b"b=2")]
    found = environ(headers=headers)
    assert (found["HTTP_ACCEPT"], found["HTTP_COOKIE"]) == ("a,b", "a=1; b=2")


def test_environ_leaves_out_a_header_that_could_pass_for_another():
    assert "HTTP_X_USER" not in environ(headers=[(b"x_user", b"root")])


def test_environ_takes_the_length_of_the_body_over_the_header():
    found = environ(body=b"12345", headers=[(b"content-length", b"9"), (b"content-type", b"a/b")])
    assert (found["CONTENT_LENGTH"], found["CONTENT_TYPE"]) == ("5", "a/b")
    assert "HTTP_CONTENT_LENGTH" not in found


def test_environ_without_addresses_still_names_a_server():
    found = environ(client=None, server=None)
    assert (found["SERVER_NAME"], found["REMOTE_ADDR"]) == ("localhost", "")
    assert environ(server=("/run/server.sock", None))["SERVER_PORT"] == "80"


def test_run_returns_what_django_answers():
    message = http_message.request_message(SCOPE, "/relay", b"")
    reply = http_message.run(get_wsgi_application(), message)
    assert (reply["status"], reply["body"]) == (200, b"OK")
    assert (b"Content-Type", b"text/plain") in http_message.response_headers(reply)


def test_run_closes_the_response_though_its_body_fails():
    class Broken(HttpResponse):
        def __iter__(self):
            raise RuntimeError("half way")

    response = Broken()

    def application(environ, start_response):
        start_response("200 OK", [])
        return response

    with pytest.raises(RuntimeError, match="half way"):
        http_message.run(application, http_message.request_message(SCOPE, "/relay", b""))
    assert response.closed
