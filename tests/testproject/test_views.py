"""The views, as Django's test client sees them."""

import hashlib

import pytest


def test_hello_is_ok_in_plain_text(client):
    response = client.get("/")
    assert response.status_code == 200
    assert response.content == b"OK"
    assert response["Content-Type"] == "text/plain"


@pytest.mark.parametrize("middleware", ["stock", "none"])
def test_hello_states_its_length_whatever_the_middleware(client, settings, middleware):
    settings.MIDDLEWARE = settings.MIDDLEWARE_SETS[middleware]
    assert client.get("/")["Content-Length"] == "2"


def test_render_name_escapes_the_name(client):
    page = client.get("/render_name/", {"name": "<Ada>"})
    assert "Hello, &lt;Ada&gt;!" in page.text


def test_render_table_has_six_rows_of_four_cells(client):
    page = client.get("/render_table/").text
    assert [row.count("<td>") for row in page.split("<tr>")[1:]] == [4] * 6


def test_render_twice_is_the_table_twice(client):
    assert client.get("/render_twice/").text == 2 * client.get("/render_table/").text


def test_lookup_finds_the_half_that_is_there(client):
    assert client.get("/lookup/").text == "25000"


@pytest.mark.parametrize("path", ["/", "/render_name/", "/lookup/", "/healthz", "/smoke/"])
def test_view_with_unsafe_method_is_refused(client, path):
    assert client.post(path).status_code == 405
    assert client.head(path).status_code == 200


@pytest.mark.parametrize("path", ["/consumer/", "/relay/", "/relay/some/path?x=1"])
def test_consumer_path_without_asgi_says_why(client, path):
    response = client.get(path)
    assert response.status_code == 501
    assert "this server speaks WSGI" in response.text


def test_socket_path_with_a_handshake_over_wsgi_says_why(client):
    response = client.get("/ws/echo/", headers={"Upgrade": "websocket", "Connection": "Upgrade"})
    assert response.status_code == 501


def test_socket_path_without_a_handshake_asks_for_one(client):
    response = client.get("/ws/echo/")
    assert (response.status_code, response["Upgrade"]) == (426, "websocket")


def test_forwarded_headers_are_not_trusted(rf):
    forged = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    request = rf.get("/", headers=forged)
    assert request.get_host() == "testserver"
    assert not request.is_secure()


def test_unknown_host_is_refused(client, settings):
    settings.ALLOWED_HOSTS = ["localhost"]
    assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 400


def test_digest_says_what_came(client):
    body = b"x" * 5_000_000  # above what Django keeps in memory
    answer = client.post("/digest/", body, content_type="application/octet-stream")
    assert answer.json() == {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    assert client.get("/digest/").status_code == 405


def test_healthz_says_who_asks(client):
    headers = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}
    answer = client.get("/healthz", headers=headers, REMOTE_ADDR="192.0.2.2").json()
    assert answer["client"] == {
        "address": "192.0.2.2",
        "scheme": "http",
        "forwarded_for": "192.0.2.1",
    }
