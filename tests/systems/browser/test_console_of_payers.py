"""What a payer sees in the console of the browser: no error, also none of a content security policy."""

from typing import Any

import pytest
from playwright.sync_api import Browser, ViewportSize

from tests.browser.conftest import DESKTOP, PHONE, WIDE, serious_faults
from tests.flows.conftest import ShopClient
from tests.stack import Stack

pytestmark = pytest.mark.slow
LOADS = "url => { const image = new Image(); image.src = url; return image.decode().then(() => true) }"


def pages(shop: ShopClient) -> list[str]:
    """The start page, a payment page, a claim page and the page after 3-D Secure; and unknown ones."""
    code = shop.qr_code()
    shop.pay(code, "payer_unknown")
    shop.wait_for_status(code, "succeeded")
    refund = shop.post("/v1/refunds", {"payment_id": code["payment_id"]})
    link = f"/v1/refunds/{refund['refund_id']}/claim-link"
    shop.post(link, {})
    card = shop.post("/v1/payments", {"token_id": "tok_test_visa", "amount": 2000, "currency": "THB"})
    return [
        "/",
        shop.qr_code()["payment_page_url"],
        code["payment_page_url"],
        shop.get(link)["claim_url"],
        f"/pay/cards/{card['payment_id']}",
    ]


@pytest.mark.parametrize(("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_pages_of_payers_have_no_error_in_the_console(
    stack: Stack, browser: Browser, shop_client: ShopClient, viewport: ViewportSize, scheme: Any
) -> None:
    errors: list[str] = []
    with browser.new_context(base_url=stack.base_url, viewport=viewport, color_scheme=scheme) as context:
        page = context.new_page()
        page.on("console", lambda line: errors.append(f"{page.url}: {line.text}"))
        page.on("pageerror", lambda error: errors.append(f"{page.url}: {error}"))
        for path in pages(shop_client):
            page.goto(path)
            assert page.evaluate(WIDE) == 0
            assert serious_faults(page) == []
            # Only browsers with a window ask for the icon by themselves.
            icon = page.locator("link[rel=icon]").get_attribute("href")
            assert page.evaluate(LOADS, icon)
    assert errors == []
