"""The search of the header while somebody types: by keys, by the mouse, on a phone and without scripts."""

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP, PHONE, WIDE, serious_faults
from tests.flows.conftest import ShopClient
from tests.stack import Stack

pytestmark = pytest.mark.slow
numbers = count(1)
OPTION = "#found [role=option]"
A_PAYMENT = re.compile("/payments/payment/.+/change/$")


@pytest.fixture
def order(shop_client: ShopClient) -> str:
    """The beginning of the references of two payments, one of which is paid."""
    reference = f"SEARCH-{next(numbers)}"
    shop_client.pay(code := shop_client.qr_code(amount=97_300, reference=f"{reference}-A"))
    shop_client.qr_code(amount=97_400, reference=f"{reference}-B")
    shop_client.wait_for_status(code, "succeeded")
    return reference


def typed(page: Page, text: str) -> None:
    page.keyboard.press("/")
    page.keyboard.type(text)
    expect(page.locator("#found")).to_be_visible()


def check_journey(page: Page, start: str, order: str) -> None:
    """Type, choose by arrows, leave by Escape, and open by Enter and by the mouse."""
    page.goto(start)
    box = page.get_by_role("combobox")
    expect(box).to_have_attribute("aria-expanded", "false")
    typed(page, order.lower())
    expect(box).to_have_attribute("aria-expanded", "true")
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options).to_have_count(3)
    expect(options.nth(1)).to_contain_text("Succeeded")
    expect(options.nth(1)).to_contain_text("***")  # the payer
    expect(page.locator("#found-count")).to_have_text("2 found")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    assert box.get_attribute("aria-activedescendant") == options.nth(1).get_attribute("id")
    assert page.evaluate(WIDE) == 0
    assert serious_faults(page) == []
    page.keyboard.press("Escape")
    expect(page.locator("#found")).to_be_hidden()
    expect(box).to_have_value(order.lower())
    page.keyboard.press("Escape")
    expect(box).not_to_be_focused()
    typed(page, order)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(A_PAYMENT)
    expect(page.locator("body")).to_contain_text(f"{order}-A")
    typed(page, order)
    page.locator(OPTION).first.click()
    page.wait_for_url(A_PAYMENT)
    expect(page.locator("body")).to_contain_text(f"{order}-B")


def test_staff_find_a_payment_while_they_type(page: Page, order: str) -> None:
    check_journey(page, "/admin/", order)


def test_enter_without_a_choice_searches_all_lists(page: Page, order: str) -> None:
    page.goto("/admin/")
    typed(page, order)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=**")
    expect(page.locator("h1")).to_contain_text(order)


@pytest.fixture
def owner_page(stack: Stack, browser: Browser) -> Iterator[Page]:
    """The owner of the demo's shop, on a phone."""
    with browser.new_context(base_url=stack.base_url, viewport=PHONE) as context:
        page = context.new_page()
        page.goto("/shop/")
        page.get_by_label("Username").fill("owner")
        page.get_by_label("Password").fill(stack.demo["admin_password"])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/shop/")
        yield page


def test_owner_finds_a_payment_on_a_phone(owner_page: Page, order: str) -> None:
    check_journey(owner_page, "/shop/", order)


def test_search_needs_no_script(stack: Stack, browser: Browser, login_state: Any, order: str) -> None:
    options: Any = {"base_url": stack.base_url, "storage_state": login_state, "viewport": DESKTOP}
    with browser.new_context(**options, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto("/admin/")
        page.get_by_label("Search").fill(f"{order}-a")
        page.get_by_label("Search").press("Enter")
        page.wait_for_url(A_PAYMENT)
