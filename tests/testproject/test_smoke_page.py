"""The smoke page in a real browser, against real servers."""

import re

import pytest
from playwright.sync_api import expect, sync_playwright

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(chromium):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**chromium)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page that fails the test if its script does."""
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(error))
    yield page
    page.close()
    assert errors == []


def card(page, path):
    return page.locator(f"article[data-path^='{path}']")


def test_smoke_page_draws_the_round_trips_of_every_socket(serve, page):
    page.goto(serve("redis", workers=1) + "/smoke/")
    for path in ("/ws/echo/", "/ws/relay/", "/ws/room/"):
        expect(card(page, path).locator(".state")).to_have_text("open")
        expect(card(page, path).locator(".figures")).to_contain_text(
            re.compile("^[0-9]{2,} replies")
        )
        expect(card(page, path).locator("canvas")).to_have_attribute(
            "aria-label", re.compile("^Round trips of")
        )
    expect(page.locator("#identity")).to_contain_text("daphne")
    expect(page.locator("#identity")).to_contain_text("redis")


def test_smoke_page_without_a_worker_says_so(serve, page):
    page.goto(serve("inmemory") + "/smoke/")
    expect(card(page, "/ws/echo/").locator(".state")).to_have_text("open")
    expect(card(page, "/ws/relay/").locator(".state")).to_have_text("refused")
    expect(card(page, "/ws/relay/").locator(".error")).to_contain_text("does not reach a worker")


def test_smoke_page_over_wsgi_says_that_there_are_no_sockets(serve, page):
    page.goto(serve("none", server="gunicorn") + "/smoke/")
    for path in ("/ws/echo/", "/ws/relay/", "/ws/room/"):
        expect(card(page, path).locator(".error")).to_contain_text("WSGI, which has no WebSockets")


def test_smoke_page_whose_server_stops_says_so(serve, page, started):
    page.goto(serve("inmemory") + "/smoke/")
    expect(card(page, "/ws/echo/").locator(".state")).to_have_text("open")
    started[-1].terminate()
    expect(card(page, "/ws/echo/").locator(".state")).to_have_text("closed")


def test_smoke_page_fits_a_phone(serve, page):
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(serve("inmemory") + "/smoke/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
