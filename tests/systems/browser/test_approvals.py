"""Outgoing money above the limit: one person asks for it, and another person approves it."""

import re
from collections.abc import Iterator
from itertools import count

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP, PHONE, WIDE, serious_faults
from tests.flows.conftest import ShopClient
from tests.stack import Stack
from tests.systems.browser.test_login import choose_password, invite

pytestmark = pytest.mark.slow
LIMIT = 5_000_000  # the default of APPROVAL_ITEM_LIMIT, 50,000 THB
numbers = count(1)


@pytest.fixture
def colleague(stack: Stack, browser: Browser, page: Page) -> Iterator[Page]:
    """A page of somebody else with the role finance."""
    link = invite(page, f"prasit{next(numbers)}", role="finance")
    with browser.new_context(base_url=stack.base_url, viewport=DESKTOP) as context:
        theirs = context.new_page()
        choose_password(theirs, link)
        yield theirs


def check_looks(page: Page) -> None:
    for size in (PHONE, DESKTOP):
        page.set_viewport_size(size)
        assert page.evaluate(WIDE) == 0
    assert serious_faults(page) == []


def open_exception(page: Page, reference: str) -> None:
    """Look again until the bank has reported the money."""
    link = page.get_by_role("link", name=re.compile("Paid after expiry"))
    for _ in range(60):
        page.goto(f"/admin/reconciliation/reconciliationexception/?q={reference}")
        if link.count():
            break
        page.wait_for_timeout(500)
    link.first.click()


def test_another_person_approves(page: Page, colleague: Page, shop_client: ShopClient) -> None:
    code = shop_client.qr_code(amount=LIMIT + 100, reference=f"banquet {next(numbers)}")
    shop_client.pay(code, "late")
    open_exception(colleague, code["payment_id"])
    colleague.get_by_role("link", name="Send to another account").click()
    colleague.get_by_label("Bank", exact=True).select_option("004")
    colleague.get_by_label("Account", exact=True).fill("4051234567")
    colleague.get_by_label("Account holder").fill("Somying")
    colleague.get_by_label("Reason").fill("The payer moved to another bank")
    colleague.get_by_role("button", name="Continue").click()
    colleague.get_by_role("button", name="Send to another account").click()
    expect(colleague.locator(".messagelist")).to_contain_text("a second person must approve it first")

    colleague.goto("/admin/approvals/approval/")
    colleague.get_by_role("link", name="50,001.00 THB").first.click()
    expect(colleague.locator(".lead.bad")).to_have_text("You requested this. Another person must decide.")
    expect(colleague.get_by_role("link", name="Approve", exact=True)).to_have_count(0)
    check_looks(colleague)

    page.goto("/admin/")
    page.get_by_role("link", name=re.compile("^Approvals")).first.click()
    page.get_by_role("link", name="50,001.00 THB").first.click()
    expect(page.locator(".lead")).to_contain_text("50,001.00 THB that we hold is sent to Somying, ...4567")
    expect(page.locator(".details")).to_contain_text("The payer moved to another bank")
    check_looks(page)
    page.get_by_role("link", name="Approve", exact=True).click()
    check_looks(page)
    page.get_by_label("Reason").fill("Called the payer")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".messagelist")).to_contain_text("Approve: done.")


def test_several_exceptions_are_accepted_at_once(page: Page, shop_client: ShopClient) -> None:
    codes = [shop_client.qr_code(amount=33_300, reference=f"bulk {next(numbers)}") for _ in range(2)]
    for code in codes:
        shop_client.pay(code, "late")
        open_exception(page, code["payment_id"])
    page.goto("/admin/reconciliation/reconciliationexception/?q=333.00")
    page.locator("#action-toggle").check()
    page.get_by_role("combobox", name="Action").select_option("Accept")
    page.get_by_role("button", name="Go", exact=True).click()  # an id may have "go"
    expect(page.locator(".lead")).to_contain_text("Accept: 2 exceptions, 666.00 THB.")
    check_looks(page)
    page.get_by_label("Reason").fill("Both tables have eaten")
    page.get_by_role("button", name="Accept").click()
    expect(page.locator(".lead")).to_have_text("Done: 2.")
    check_looks(page)
