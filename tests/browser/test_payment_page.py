"""A customer in a browser: the payment page turns by itself, offline, without JavaScript, on a phone."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, serious_faults
from tests.flows.conftest import ShopClient
from tests.qrcodes.test_image_view import texts_in
from tests.stack import Stack

pytestmark = pytest.mark.slow
SMALL: ViewportSize = {"width": 320, "height": 568}
WITHIN_MS = 2000
"""How soon the page asks again, by its own clock: it shows a payment within this time."""


@pytest.fixture
def customer(stack: Stack, browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(base_url=stack.base_url, viewport=SMALL, locale="th-TH") as context:
        yield context


def open_page(context: BrowserContext, code: dict[str, Any], language: str = "en") -> Page:
    page = context.new_page()
    page.goto(f"/pay/{code['qr_code_id']}?lang={language}")
    return page


@pytest.mark.parametrize(
    ("scenario", "status", "heading"),
    [
        ("paid", "succeeded", "Paid"),
        ("declined", "failed", "The payment failed"),
    ],
)
def test_page_turns_by_itself(
    customer: BrowserContext, shop_client: ShopClient, scenario: str, status: str, heading: str
) -> None:
    code = shop_client.qr_code()
    page = open_page(customer, code)
    expect(page.get_by_role("heading", level=1)).to_have_text("Scan to pay")
    shop_client.pay(code, scenario)
    shop_client.wait_for_status(code, status)
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)


def test_page_asks_often_while_it_is_shown(customer: BrowserContext, shop_client: ShopClient) -> None:
    page = customer.new_page()
    page.clock.install()
    page.goto(f"/pay/{shop_client.qr_code()['qr_code_id']}")
    for _ in range(3):
        with page.expect_response("**/state") as asked:
            page.clock.run_for(WITHIN_MS)
        assert asked.value.status == 304


def test_countdown_follows_the_server_when_the_timer_of_the_device_does_not(
    customer: BrowserContext, shop_client: ShopClient
) -> None:
    page = customer.new_page()
    page.clock.install()
    page.goto(f"/pay/{shop_client.qr_code(expiry_minutes=15)['qr_code_id']}")
    with page.expect_response("**/state"):
        page.clock.fast_forward(5 * 60_000)
    expect(page.locator("#countdown")).to_have_text(re.compile("^14:"))


def test_wrong_amount_and_end_of_the_code_appear(customer: BrowserContext, shop_client: ShopClient) -> None:
    underpaid, ended = shop_client.qr_code(), shop_client.qr_code()
    pages = open_page(customer, underpaid), open_page(customer, ended)
    shop_client.pay(underpaid, "under")
    shop_client.post(f"/v1/qr-codes/{ended['qr_code_id']}/expire", {})
    expect(pages[0].get_by_role("heading", level=1)).to_have_text("The shop checks your payment")
    expect(pages[1].get_by_role("heading", level=1)).to_have_text("This code has expired")


def test_page_comes_back_after_a_lost_connection(customer: BrowserContext, shop_client: ShopClient) -> None:
    code = shop_client.qr_code()
    page = open_page(customer, code)
    customer.set_offline(True)
    expect(page.get_by_text("No connection.")).to_be_visible()
    shop_client.pay(code)
    shop_client.wait_for_status(code, "succeeded")
    customer.set_offline(False)
    expect(page.get_by_role("heading", level=1)).to_have_text("Paid")


def test_page_works_without_javascript(stack: Stack, browser: Browser, shop_client: ShopClient) -> None:
    code = shop_client.qr_code()
    with browser.new_context(base_url=stack.base_url, viewport=SMALL, java_script_enabled=False) as context:
        page = open_page(context, code)
        assert page.locator("noscript meta[http-equiv=refresh]").count() == 1
        assert page.locator("img.code").evaluate("image => image.naturalWidth") > 0
        shop_client.pay(code)
        shop_client.wait_for_status(code, "succeeded")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Paid")


@pytest.mark.parametrize("language", ["en", "th"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_readable(
    customer: BrowserContext, shop_client: ShopClient, language: str, scheme: Any
) -> None:
    page = open_page(customer, shop_client.qr_code(reference="A" * 35), language)
    page.emulate_media(color_scheme=scheme)
    for size in (SMALL, DESKTOP):
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert serious_faults(page) == []


def test_saved_card_is_decoded(customer: BrowserContext, shop_client: ShopClient) -> None:
    code = shop_client.qr_code(reference="INV-2026-0042")
    page = open_page(customer, code)
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save the picture").click()
    assert texts_in(saved.value.path().read_bytes()) == [code["qr_data"]]
