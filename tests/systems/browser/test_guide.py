"""The guide in a browser without a network: its search, its menu on a phone, dark colours, accessibility."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import DESKTOP, PHONE, WIDE, serious_faults
from tests.stack import Stack

pytestmark = pytest.mark.slow


@pytest.fixture(params=[("light", DESKTOP), ("dark", PHONE)], ids=["desktop", "phone"])
def guide(stack: Stack, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The first page. Requests to other hosts and errors in the console of the browser fail the test."""
    scheme, viewport = request.param
    others: list[str] = []

    def refuse(route: Route) -> None:
        others.append(route.request.url)
        route.abort()

    with browser.new_context(
        base_url=stack.base_url,
        viewport=viewport,
        color_scheme=scheme,
        permissions=["clipboard-read", "clipboard-write"],
    ) as context:
        context.route(lambda url: not url.startswith(stack.base_url), refuse)
        page, errors = context.new_page(), []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.goto("/guide")
        yield page
        assert (errors, others) == ([], [])


@pytest.mark.parametrize(
    ("query", "heading", "path"),
    [
        ("idempotency", "Idempotency", "/guide/concepts#idempotency"),
        ("renew SECRET", "Renew it without a gap", "/guide/webhooks#renew-it-without-a-gap"),
        ("จ่ายเงินแทน", "2. จ่ายเงินแทนลูกค้า", "/guide/th/start/curl#2-จ่ายเงินแทนลูกค้า"),
        ("ธนาคารประกาศ", "1. เลือกธนาคาร", "/guide/th/going-live#1-เลือกธนาคาร"),  # two words that stand apart
    ],
)
def test_search_finds_a_heading_in_english_and_thai(guide: Page, query: str, heading: str, path: str) -> None:
    guide.keyboard.press("/")
    guide.keyboard.type(query)
    found = guide.locator("#results").get_by_role("link").filter(has_text=heading).first
    expect(found).to_be_visible()
    found.click()
    expect(guide.get_by_role("heading", name=heading, exact=False).first).to_be_in_viewport()
    assert guide.evaluate("decodeURIComponent(location.pathname + location.hash)") == path


def test_search_says_when_nothing_is_found_and_shows_markup_as_text(guide: Page) -> None:
    search = guide.get_by_label("Search the guide")
    search.fill("<b>zzz</b>")
    expect(guide.get_by_text("Nothing was found.")).to_be_visible()
    search.press("Escape")
    expect(guide.locator("#results")).to_be_hidden()


def test_search_is_used_with_the_keyboard(guide: Page) -> None:
    guide.get_by_label("Search the guide").fill("retries")
    expect(guide.locator("#results a").first).to_be_visible()
    guide.keyboard.press("ArrowDown")
    guide.keyboard.press("ArrowDown")
    expect(guide.locator("#results a").nth(1)).to_be_focused()
    guide.keyboard.press("ArrowUp")
    guide.keyboard.press("Enter")
    guide.wait_for_url("**/guide/*")


@pytest.mark.parametrize("path", ["/guide", "/guide/webhooks", "/guide/start/python", "/guide/th"])
def test_page_fits_the_screen_and_is_accessible(guide: Page, path: str) -> None:
    guide.goto(path)
    assert guide.evaluate(WIDE) == 0
    assert serious_faults(guide) == []


def test_sample_is_copied_and_menu_leads_on(guide: Page, stack: Stack) -> None:
    guide.goto("/guide/start/curl")
    sample = guide.locator(".sample").first
    sample.hover()
    sample.get_by_role("button", name="Copy").click()
    assert guide.evaluate("navigator.clipboard.readText()").startswith(f"export BASE={stack.base_url}\n")
    guide.get_by_role("link", name="Next Python").click()
    expect(guide.get_by_role("heading", name="Quickstart with Python")).to_be_visible()


def test_language_of_a_page_is_switched(guide: Page) -> None:
    guide.goto("/guide/testing")
    guide.get_by_role("link", name="ไทย", exact=True).click()
    expect(guide.get_by_role("heading", name="บัตรและกรณีทดสอบ", level=1)).to_be_visible()
    sample = guide.locator(".sample").first
    sample.hover()
    sample.get_by_role("button", name="คัดลอก").click()
    expect(sample.get_by_role("button", name="คัดลอกแล้ว")).to_be_visible()
    guide.get_by_role("link", name="English", exact=True).click()
    expect(guide.get_by_role("heading", name="Test cards and scenarios", level=1)).to_be_visible()


def test_guide_is_read_without_javascript(stack: Stack, browser: Browser) -> None:
    with browser.new_context(base_url=stack.base_url, viewport=PHONE, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto("/guide/concepts")
        page.get_by_role("link", name="A till").click()
        expect(page.get_by_role("heading", name="A till")).to_be_visible()
        expect(page.get_by_label("Search the guide")).to_be_hidden()
