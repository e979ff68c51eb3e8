"""The pages of a shop fit a telephone and a computer, in Thai and English, and have no serious fault."""

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import DESKTOP, PHONE, WIDE, serious_faults
from tests.flows.conftest import ShopClient
from tests.stack import Stack

pytestmark = pytest.mark.slow
# Values that end beyond the card, which hides the rest.
CUT = """[...document.querySelectorAll('fieldset .readonly')].filter(
    e => e.getBoundingClientRect().right > e.closest('fieldset').getBoundingClientRect().right).length"""


@pytest.fixture(scope="module")
def cookies(stack: Stack, browser: Browser) -> Any:
    """Of an owner of the demo's shop, who is logged in."""
    client = ShopClient(stack.base_url, stack.secret_key)
    client.pay(client.qr_code(amount=77_700, reference="of the shop"), "paid")
    with browser.new_context(base_url=stack.base_url) as context:
        page = context.new_page()
        page.goto("/shop/")
        page.get_by_label("Username").fill(stack.demo["owner_user"])
        page.get_by_label("Password").fill(stack.demo["admin_password"])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/shop/")
        return context.storage_state()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["computer", "telephone"])
@pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "th")])
def test_pages_of_a_shop_fit_the_screen_and_have_no_serious_fault(
    stack: Stack, browser: Browser, cookies: Any, size: Any, theme: Any, language: str
) -> None:
    with browser.new_context(
        base_url=stack.base_url, viewport=size, color_scheme=theme, locale=language, storage_state=cookies
    ) as context:
        page = context.new_page()
        errors: list[str] = []
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.goto("/shop/")
        expect(page.locator("html")).to_have_attribute("lang", language)
        paths = page.locator("#menu a[href^='/shop/']").evaluate_all("all => all.map(a => a.pathname)")
        assert len(set(paths)) > 12
        faults = {}
        for path in sorted({*paths, "/shop/switch/", "/shop/account/"}):
            page.goto(path)
            faults[path] = [*serious_faults(page), *(["wide"] if page.evaluate(WIDE) else [])]
        page.goto("/shop/payments/payment/")
        page.locator("#result_list a").first.click()
        faults["payment"] = [*serious_faults(page), *(["wide"] if page.evaluate(WIDE) else [])]
        faults["payment"] += ["cut"] if page.evaluate(CUT) else []
        assert ({path: found for path, found in faults.items() if found}, errors) == ({}, [])
