"""A payer in a browser: the claim page without JavaScript, on a phone, in both languages, in the dark."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from core.http.responses import MAX_BODY
from core.thai.slips import Slip, slip_payload
from tests.browser.conftest import DESKTOP, PHONE, serious_faults
from tests.browser.test_payment_page import SMALL
from tests.flows.claim_links import waiting_claim
from tests.flows.conftest import ShopClient
from tests.reconciliation.claims.builders import NO_BANK
from tests.reconciliation.claims.test_claim_pictures import photograph
from tests.stack import Stack, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def claim(stack: Stack, shop_client: ShopClient) -> dict[str, Any]:
    return waiting_claim(stack, shop_client)


def test_payer_names_an_account_without_javascript(
    browser: Browser, shop_client: ShopClient, claim: dict[str, Any]
) -> None:
    with browser.new_context(viewport=SMALL, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{claim['url']}?lang=en")
        page.get_by_label("Reference on the slip").fill("wrong")
        fill_account(page)
        page.get_by_role("button", name="Send my refund here").click()
        expect(page.get_by_role("alert")).to_contain_text("This does not match the payment.")
        page.get_by_label("Reference on the slip").fill(claim["slip"])
        page.get_by_role("button", name="Send my refund here").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("We have your account")
        wait_until(lambda: bool(shop_client.get(claim["path"])["status"] == "completed"), 60)
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Your money was sent")


def test_payer_sends_a_picture_of_the_slip(
    browser: Browser, shop_client: ShopClient, claim: dict[str, Any]
) -> None:
    """The web server takes larger bodies for an open link."""
    picture = photograph(slip_payload(Slip(NO_BANK, claim["slip"])), "JPEG")
    assert len(picture) > 2 * MAX_BODY
    with browser.new_context(viewport=PHONE, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{claim['url']}?lang=en")
        fill_account(page)
        page.get_by_label("Picture of the slip").set_input_files(file_of(bytes(11_000_000)))
        page.get_by_role("button", name="Send my refund here").click()
        expect(page.get_by_role("alert")).to_contain_text("The picture has more than 10 MB.")
        fill_account(page)
        page.get_by_label("Picture of the slip").set_input_files(file_of(b"no picture"))
        page.get_by_role("button", name="Send my refund here").click()
        expect(page.get_by_text("This is not a PNG, JPEG or WebP picture")).to_be_visible()
        page.get_by_label("Picture of the slip").set_input_files(file_of(picture))
        page.get_by_role("button", name="Send my refund here").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("We have your account")


def fill_account(page: Page) -> None:
    page.get_by_label("Your bank").select_option(label="Kasikorn Bank")
    page.get_by_label("Your account number").fill("405-1-23456-7")
    page.get_by_label("Name of the account").fill("สมหญิง ใจดี")


def file_of(content: bytes) -> Any:
    return {"name": "slip.jpg", "mimeType": "image/jpeg", "buffer": content}


def test_claim_page_is_readable(browser: Browser, claim: dict[str, Any]) -> None:
    with browser.new_context(viewport=SMALL) as context:
        page = context.new_page()
        for language in ("en", "th"):
            page.goto(f"{claim['url']}?lang={language}")
            page.locator("button.button").click()  # with the mistakes named
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                for size in (SMALL, DESKTOP):
                    page.set_viewport_size(size)
                    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
                    assert serious_faults(page) == []
