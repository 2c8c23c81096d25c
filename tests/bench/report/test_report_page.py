"""The page as a person sees it: in Chromium, wide and narrow, light and dark."""

import pytest
from playwright.sync_api import sync_playwright

from bench.report import publish

pytestmark = pytest.mark.browser

WIDTHS = (1280, 375)


@pytest.fixture(scope="module")
def browser(chromium):
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(**chromium)
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(full, tmp_path_factory):
    folder = full.write(tmp_path_factory.mktemp("page") / "campaign")
    return publish(folder).as_uri()


class Visit:
    """A page that is drawn, and everything it said and asked for until then."""

    def __init__(self, browser, address, *, width=1280, scheme="light"):
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        self.drawn(scheme)

    def drawn(self, theme):
        self.page.wait_for_selector(f"html[data-drawn={theme}]", state="attached")

    def background(self):
        return self.page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_page_is_drawn_silently_from_itself_alone(browser, address, width, scheme):
    visit = Visit(browser, address, width=width, scheme=scheme)
    assert visit.said == []
    assert visit.asked == [address]
    assert visit.page.locator(".chart svg").count() == 8


@pytest.mark.parametrize("width", [*WIDTHS, 320])
def test_page_does_not_scroll_sideways(browser, address, width):
    page = Visit(browser, address, width=width).page
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_no_chart_is_cut_off(browser, address, width):
    page = Visit(browser, address, width=width).page
    cut = page.evaluate(
        """[...document.querySelectorAll('.chart')]
           .filter(one => one.querySelector('svg').getBoundingClientRect().width
                          > one.clientWidth + 1)
           .map(one => one.id)"""
    )
    assert cut == []


def test_button_switches_between_light_and_dark(browser, address):
    visit = Visit(browser, address)
    assert visit.background() == "rgb(255, 255, 255)"
    visit.page.click("#theme")
    visit.drawn("dark")
    assert visit.background() == "rgb(20, 24, 28)"
    visit.page.click("#theme")
    visit.drawn("light")
    assert visit.said == []


def test_page_follows_a_change_of_preference(browser, address):
    visit = Visit(browser, address)
    visit.page.emulate_media(color_scheme="dark")
    visit.drawn("dark")
    assert visit.background() == "rgb(20, 24, 28)"


def test_charts_follow_the_width_of_the_window(browser, address):
    visit = Visit(browser, address)
    visit.page.set_viewport_size({"width": 375, "height": 900})
    visit.page.wait_for_function(
        "document.querySelector('#chart-load svg').getBoundingClientRect().width <= 343"
    )


def test_figures_can_be_saved(browser, address, full):
    visit = Visit(browser, address)
    with visit.page.expect_download() as download:
        visit.page.click("#save")
    saved = download.value.path().read_text()
    assert full.campaign.name in saved


def test_page_is_readable_without_its_script(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert "daphne-redis" in page.inner_text("#verdict")
    assert "Imaginary CPU 3000" in page.inner_text("header")
    context.close()


def test_hostile_log_is_text_on_the_page(browser, address, make):
    page = Visit(browser, address).page
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert make.hostile in page.inner_text("#discards pre")
