"""A customer in a browser: from the page of a payment link to the code, without JavaScript, on a phone."""

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import DESKTOP, serious_faults
from tests.browser.test_payment_page import SMALL
from tests.flows.conftest import ShopClient
from tests.stack import Stack

pytestmark = pytest.mark.slow
LINKS = "/v1/payment-links"


def test_customer_chooses_an_amount_and_pays(stack: Stack, browser: Browser, shop_client: ShopClient) -> None:
    link = shop_client.post(LINKS, {"amount_min": 2_000, "amount_max": 200_000, "description": "Noodles"})
    with browser.new_context(base_url=stack.base_url, viewport=SMALL, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{link['url']}?lang=en")
        page.get_by_label("Amount in baht").fill("5")
        page.get_by_role("button", name="Pay").click()
        expect(page.locator("#id_amount_error")).to_have_text("From ฿20.00 to ฿2,000.00.")
        page.get_by_label("Amount in baht").fill("๒๕๐")
        page.get_by_role("button", name="Pay").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Scan to pay")
        expect(page.locator(".amount")).to_have_text("฿250.00")
        page.goto(link["url"])
        expect(page.locator("img.code")).to_be_visible()
        (payment,) = shop_client.get(f"/v1/payments?payment_link_id={link['payment_link_id']}")["payments"]
        code = shop_client.get(f"/v1/qr-codes/{payment['qr_code_id']}")
        shop_client.pay(code)
        shop_client.wait_for_status(code, "succeeded")
        page.goto(f"{link['url']}?lang=en")
        expect(page.get_by_role("heading", level=1)).to_have_text("Paid")


@pytest.mark.parametrize("language", ["en", "th"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_of_a_link_is_readable(
    stack: Stack, browser: Browser, shop_client: ShopClient, language: str, scheme: Any
) -> None:
    link = shop_client.post(
        LINKS, {"amount_min": 100, "amount_max": 200_000_000, "description": "A" * 255, "reference": "B" * 35}
    )
    with browser.new_context(base_url=stack.base_url, color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(f"{link['url']}?lang={language}")
        for size in (SMALL, DESKTOP):
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
            assert serious_faults(page) == []
