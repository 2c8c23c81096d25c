"""The setups of 2016 under supervisord: they serve what today's serve, as far as they can."""

import http.client
from contextlib import closing
from email.message import Message

import pytest
from django.test import RequestFactory

from bench.contract import violations
from bench.environment import HOST
from bench.ports import APPLICATION
from bench.supervise import deployed
from bench.variants import VARIANTS
from testproject.views import hello

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]
NAMES = [name for name, variant in VARIANTS.items() if variant.stack == "channels1"]
PAGE = ("Content-Type", "Content-Length")


@pytest.fixture(scope="module", params=NAMES)
def deployment(request, python):
    with deployed(VARIANTS[request.param]) as running:
        yield running


def test_page_is_the_one_of_today(deployment):
    today = hello(RequestFactory().get("/"))
    status, headers, body = get("/")
    assert (status, body) == (today.status_code, today.content)
    assert {name: headers[name] for name in PAGE} == {name: today.headers[name] for name in PAGE}


def test_identity_is_found_out_by_the_process_itself(deployment):
    told = deployment.identity
    assert told["stack"] == deployment.variant.stack
    assert told["server_version"] == told["versions"][told["server"]]
    assert (told["versions"]["channels"], told["versions"]["django"]) == ("1.1.8", "2.2.28")


def test_contract_of_2016_holds(deployment):
    assert violations(deployment.base_url, deployment.variant) == []


def test_socket_over_wsgi_is_refused_at_once(deployment):
    status = get("/ws/echo/")[0]
    assert status == 404 if deployment.variant.interface == "wsgi" else status >= 400


def get(path: str) -> tuple[int, Message, bytes]:
    with closing(http.client.HTTPConnection(HOST, APPLICATION, timeout=10)) as client:
        client.request("GET", path)
        answer = client.getresponse()
        return answer.status, answer.headers, answer.read()
