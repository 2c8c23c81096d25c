"""The page that draws the live feed, in a real browser."""

import asyncio
import re

import pytest
from playwright.async_api import async_playwright, expect

pytestmark = pytest.mark.browser


@pytest.fixture
async def page(chromium):
    """A page that fails the test if its script does."""
    errors = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**chromium)
        page = await browser.new_page()
        page.on("pageerror", lambda error: errors.append(error))
        yield page
        await browser.close()
    assert errors == []


async def test_page_draws_the_feed_and_its_latency_and_finds_nothing_lost(serve, publish, page):
    await page.goto(f"http://{serve()}/topics/")
    await expect(page.locator("#state")).to_have_text("live")
    await expect(page.locator("#subscribed")).to_have_text("10")
    feed = publish(topics=10, rate=200, count=400)
    await feed.statistics()
    await expect(page.locator("#records")).to_have_text("400")
    await expect(page.locator("#lost")).to_have_text("0")
    await expect(page.locator("#twice")).to_have_text("0")
    await expect(page.locator("#latency")).to_have_text(re.compile(r"^\d+\.\d / \d+\.\d ms$"))
    for canvas in ("#latencies", "#rates"):
        drawn = re.compile("tenth of a second, up to [0-9]+")
        await expect(page.locator(canvas)).to_have_attribute("aria-label", drawn)


async def test_page_says_what_is_wrong_with_a_topic_and_goes_on(serve, page):
    await page.goto(f"http://{serve()}/topics/")
    await expect(page.locator("#state")).to_have_text("live")
    await page.locator("input").fill("wrong!")
    await page.locator("button").click()
    await expect(page.locator("#complaint")).to_contain_text("is not a topic")
    await page.locator("input").fill("right also-right")
    await page.locator("button").click()
    await expect(page.locator("#subscribed")).to_have_text("2")
    await expect(page.locator("#complaint")).to_have_text("")


async def test_page_whose_server_stops_says_so_and_fits_a_phone(serve, page, started):
    await page.set_viewport_size({"width": 320, "height": 640})
    await page.goto(f"http://{serve()}/topics/")
    await expect(page.locator("#state")).to_have_text("live")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await asyncio.to_thread(started[-1].kill)
    await expect(page.locator("#state")).to_have_text("closed")
