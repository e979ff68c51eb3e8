"""An admin opens a live merchant in a browser, connects it to a bank and issues a key that makes a code."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import DESKTOP, PHONE, WIDE, serious_faults
from tests.flows.conftest import ShopClient
from tests.stack import Stack

pytestmark = pytest.mark.slow
BILLER_ID = "010753600037453"
NO_BANK = "http://127.0.0.1:9"  # the workers inquire about the code of the test


def give_reason(page: Page, text: str) -> None:
    page.get_by_label("Reason", exact=True).fill(text)


def shown_secret(page: Page) -> str:
    """The secret of this page, which the button of the page copies."""
    page.locator(".secret button.copy").click()
    copied = str(page.evaluate("navigator.clipboard.readText()"))
    assert copied == page.locator(".secret code").inner_text()
    page.get_by_role("link", name="I have copied it").click()
    return copied


def add_merchant(page: Page, name: str) -> None:
    page.goto("/admin/")
    page.locator("#menu").get_by_role("link", name="Merchants", exact=True).click()
    page.get_by_role("link", name="Add merchant").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Live: customers pay to its own account").check()
    give_reason(page, "The contract is signed")
    page.get_by_role("button", name="Add merchant").click()
    expect(page.locator("h1")).to_contain_text(name)


def connect_bank(page: Page) -> str:
    """Connect the merchant of this page, and return the address that the bank must call."""
    page.locator("#next-steps").get_by_role("link", name="Connect to Siam Commercial Bank").click()
    page.get_by_label("Biller id").fill(BILLER_ID)
    page.get_by_label("Reference 3").fill("PTF")
    page.get_by_label("API key of the application on developer.scb").fill("l7f329b707a0714f")
    page.get_by_label("API secret of the application").fill("a-secret-of-the-bank")
    page.get_by_label("URL of its API").fill(NO_BANK)
    give_reason(page, "The bank sent the credentials")
    page.get_by_role("button", name="Connect to Siam Commercial Bank").click()
    return shown_secret(page)


def test_live_merchant_is_set_up_and_makes_a_code(stack: Stack, page: Page) -> None:
    add_merchant(page, "Khao Soi Nimman")
    steps = page.locator("#next-steps li")
    expect(steps).to_have_count(3)
    address = connect_bank(page)
    assert re.fullmatch(re.escape(stack.base_url) + "/banks/scb/notifications/bep_[0-9A-Za-z]{43}", address)
    expect(page.locator("#bank")).to_contain_text("application_secret: set")
    expect(steps).to_have_count(2)
    page.locator("#keys").get_by_role("link", name="Issue a secret key").click()
    give_reason(page, "For the till")
    page.get_by_role("button", name="Issue a secret key").click()
    key = shown_secret(page)
    code: Any = ShopClient(stack.base_url, key).qr_code(amount=99_900)
    assert BILLER_ID in code["qr_data"]
    page.reload()
    expect(page.locator("#keys tbody tr")).to_contain_text(["active"])
    expect(steps).to_have_count(1)
    expect(page.locator("#staff-acts")).to_contain_text("The bank sent the credentials")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_of_setup_fit_the_screen_and_have_no_serious_fault(page: Page, width: int, theme: Any) -> None:
    page.set_viewport_size(DESKTOP if width == DESKTOP["width"] else PHONE)
    page.emulate_media(color_scheme=theme)
    page.goto("/admin/merchants/merchant/do/create/")
    check(page)
    page.get_by_label("Name").fill(f"Shop at {width} {theme}")
    page.get_by_label("Live: customers pay to its own account").check()
    give_reason(page, "The contract is signed")
    page.get_by_role("button", name="Add merchant").click()
    check(page)
    merchant = page.url.removesuffix("change/")
    for slug in ("connect-scb", "connect-bbl", "issue-key", "rename"):
        page.goto(f"{merchant}do/{slug}/")
        assert page.evaluate(WIDE) == 0, page.url


def check(page: Page) -> None:
    assert page.evaluate(WIDE) == 0, page.url
    assert serious_faults(page) == [], page.url
