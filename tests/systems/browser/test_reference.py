"""The reference page in a real browser: operations, a phone, dark colours, and no other origin."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP, PHONE, WIDE
from tests.stack import Stack

pytestmark = pytest.mark.slow


@pytest.fixture
def reference(stack: Stack, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page, shown. Errors of scripts and answers of other origins fail the test."""
    scheme, viewport = request.param
    with browser.new_context(
        base_url=stack.base_url,
        viewport=viewport,
        color_scheme=scheme,
        permissions=["clipboard-read", "clipboard-write"],
    ) as context:
        page, errors, answered = context.new_page(), [], []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.on("response", lambda response: answered.append(response.url))
        page.goto("/docs")
        expect(page.get_by_role("heading", name="Thai QR Payments")).to_be_visible(timeout=60_000)
        yield page
        assert errors == []
        assert [url for url in answered if not url.startswith((stack.base_url, "blob:", "data:"))] == []


@pytest.mark.parametrize(
    "reference", [("light", DESKTOP), ("dark", PHONE)], ids=["desktop", "phone"], indirect=True
)
def test_reference_shows_operations_in_the_colors_of_the_browser(reference: Page) -> None:
    expect(reference.get_by_role("heading", name="Generate a QR code").first).to_be_attached()
    expect(reference.get_by_role("link", name="Guide")).to_have_attribute("href", "/guide")
    assert reference.evaluate(WIDE) == 0
    is_dark = reference.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    ground = reference.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground))) < 150) == is_dark


@pytest.mark.parametrize("reference", [("light", DESKTOP)], indirect=True)
def test_samples_of_an_operation_are_copied_with_the_test_key(reference: Page, stack: Stack) -> None:
    for label, begin in (
        ("Python", "from thaiqr import"),
        ("TypeScript", "import { ThaiQR }"),
        ("curl", "curl -sS"),
    ):
        tab = reference.get_by_role("tab", name=label, exact=True).first
        tab.click()
        panel = reference.locator(f"[id='{tab.get_attribute('aria-controls')}']")
        panel.get_by_role("button", name="Copy").first.click()
        copied = reference.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(begin) and stack.secret_key in copied and stack.base_url in copied
