"""An HTTP request and its response on their way through a channel layer, as plain values.

The request crosses as the part of its ASGI scope that a view can see, with the body; the worker
turns it into a WSGI environment, for Django's handler is fastest without an event loop. A layer's
messages hold lists and no tuples, so what was a pair here may be a list there.
"""

import sys
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

SCOPE_KEYS = (
    "client",
    "headers",
    "http_version",
    "method",
    "path",
    "query_string",
    "root_path",
    "scheme",
    "server",
)
Headers = list[tuple[bytes, bytes]]


def request_message(scope: dict[str, Any], mount: str, body: bytes) -> dict[str, Any]:
    """Return the request in ``scope`` as seen below the path ``mount``, which ends in no slash."""
    message = {key: scope[key] for key in SCOPE_KEYS if key in scope}
    message["root_path"] = message.get("root_path", "") + mount
    message["body"] = body
    return message


def environ(message: dict[str, Any]) -> dict[str, Any]:
    """Return the WSGI environment (PEP 3333) of a ``request_message``."""
    server_name, server_port = message.get("server") or ("localhost", 80)
    root_path = message["root_path"]
    return {
        "REQUEST_METHOD": message["method"],
        "SCRIPT_NAME": wsgi_text(root_path),
        "PATH_INFO": wsgi_text(message["path"].removeprefix(root_path)),
        "QUERY_STRING": message["query_string"].decode("latin-1"),
        "REMOTE_ADDR": (message.get("client") or ("",))[0],
        "SERVER_NAME": server_name,
        "SERVER_PORT": str(server_port or 80),  # a unix socket has none
        "SERVER_PROTOCOL": f"HTTP/{message['http_version']}",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": message.get("scheme", "http"),
        "wsgi.input": BytesIO(message["body"]),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        **environ_headers(message["headers"]),
        "CONTENT_LENGTH": str(len(message["body"])),
    }


def environ_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return ``headers`` under their WSGI names, repeated ones joined.

    A name with an underscore is left out: it could pass itself off as the one with a hyphen. So is
    the length, which the body has by now.
    """
    found: dict[str, str] = {}
    for name, value in headers:
        if b"_" in name or name == b"content-length":
            continue
        key = name.decode("latin-1").upper().replace("-", "_")
        if key != "CONTENT_TYPE":
            key = f"HTTP_{key}"
        text = value.decode("latin-1")
        if key in found:
            text = found[key] + ("; " if key == "HTTP_COOKIE" else ",") + text
        found[key] = text
    return found


def wsgi_text(text: str) -> str:
    """Return ``text`` as WSGI wants it: the UTF-8 bytes, each as one character."""
    return text.encode().decode("latin-1")


def run(application: Callable[..., Any], message: dict[str, Any]) -> dict[str, Any]:
    """Return the reply of the WSGI ``application`` to a ``request_message``."""
    head: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        head[:] = status, headers

    response = application(environ(message), start_response)
    try:
        body = b"".join(response)
    finally:
        response.close()  # sends request_finished: Django lets go of what the request held
    status, headers = head
    return {"status": int(status[:3]), "headers": headers, "body": body}


def response_headers(reply: dict[str, Any]) -> Headers:
    """Return the headers of a ``run`` reply as ASGI has them."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply["headers"]]
