import socket

import pytest

from locustfiles.driver.target import BadTarget, parsed, resolve


def test_address_is_taken_apart():
    parts = parsed("http://[::1]:8000", "/relay/?x=1", ("http",))
    assert parts == ("http", "[::1]:8000", "::1", 8000)


def test_port_is_80_where_none_is_named():
    assert parsed("http://localhost/", "/", ("http",))[3] == 80


@pytest.mark.parametrize(
    ("host", "path", "said"),
    [
        (None, "/", "no host"),
        ("", "/", "no host"),
        ("127.0.0.1:80", "/", "must start with http://"),
        ("https://127.0.0.1", "/", "must start with http://"),
        ("http://", "/", "no host name"),
        ("http://127.0.0.1:99999", "/", "port"),
        ("http://127.0.0.1:x", "/", "port"),
        ("http://127.0.0.1/app", "/", "--path /app"),
        ("http://127.0.0.1", "slashless", "starts with /"),
        ("http://127.0.0.1", "/two words", "no spaces"),
        ("http://127.0.0.1", "/a\r\nHost: b", "no spaces"),
        ("http://127.0.0.1", "/naïve", "starts with /"),
    ],
)
def test_address_that_cannot_be_is_refused(host, path, said):
    with pytest.raises(BadTarget, match=said):
        parsed(host, path, ("http",))


def test_name_that_nobody_has_is_refused():
    with pytest.raises(BadTarget, match=r"cannot find nowhere\.invalid"):
        resolve("http://nowhere.invalid", "/")


def test_port_where_nobody_listens_is_refused():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(BadTarget, match="start the server first"):
            resolve(f"http://127.0.0.1:{port}", "/")


def test_server_that_listens_is_resolved():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        target = resolve(f"http://localhost:{port}", "/relay/")
    assert target.url == f"http://localhost:{port}/relay/"
    assert target.address[1] == port
