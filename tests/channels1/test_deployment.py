"""The setups of 2016 under supervisord: they serve what today's serve, as far as they can."""

import http.client
from contextlib import closing
from email.message import Message

import pytest
from django.test import RequestFactory

from bench.contract import violations
from bench.environment import HOST
from bench.ports import APPLICATION
from bench.supervise import deployed, stack_bin
from bench.variants import STACKS, VARIANTS
from testproject.views import hello

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]
NAMES = [name for name, variant in VARIANTS.items() if variant.stack != "today"]
VERSIONS = {"channels1": ("1.1.8", "2.2.28"), "channels017": ("0.17.0", "1.10.1")}
PAGE = ("Content-Type", "Content-Length")


@pytest.fixture(scope="module", params=NAMES)
def deployment(request):
    variant = VARIANTS[request.param]
    if variant.stack == "channels1":
        request.getfixturevalue("python")
    elif not stack_bin(variant).is_dir():
        # The versions of 2016 run on Python 3.6, which no machine has by itself any more.
        pytest.skip(f"not applicable: no Python 3.6 here; {STACKS[variant.stack].made_by}")
    with deployed(variant) as running:
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
    assert (told["versions"]["channels"], told["versions"]["django"]) == VERSIONS[told["stack"]]


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
