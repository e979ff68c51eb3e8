"""A colleague is invited, sets up an authenticator app, and logs in with it, in real browsers."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.authenticator_app import App
from tests.browser.conftest import PHONE
from tests.browser.test_console import WIDE, serious_faults
from tests.stack import Stack

pytestmark = pytest.mark.slow
PASSWORD = "three-elephants-crossing"


def check_looks(page: Page) -> None:
    assert serious_faults(page) == []
    assert page.evaluate(WIDE) == 0


def test_invited_colleague_logs_in_with_a_second_factor(page: Page, stack: Stack, browser: Browser) -> None:
    page.goto("/admin/auth/user/")
    page.get_by_role("link", name="Invite a colleague").click()
    check_looks(page)
    page.get_by_label("Username").fill("somsri")
    page.get_by_label("viewer").check()
    page.get_by_role("button", name="Make the link").click()
    link = page.get_by_label("Link").input_value()

    with browser.new_context(base_url=stack.base_url, viewport=PHONE) as context:
        theirs = context.new_page()
        theirs.goto(link)
        check_looks(theirs)
        theirs.get_by_label("New password:").fill(PASSWORD)
        theirs.get_by_label("New password confirmation").fill(PASSWORD)
        theirs.get_by_role("button", name="Continue").click()
        expect(theirs.locator("#menu")).to_be_attached()
        theirs.goto("/admin/account/")
        check_looks(theirs)
        theirs.get_by_role("link", name="Set up an authenticator app").click()
        check_looks(theirs)
        app = App(theirs.locator(".secret code").inner_text().replace(" ", ""), [])
        theirs.get_by_label("Code").fill(app.code())
        theirs.get_by_role("button", name="Continue").click()
        expect(theirs.locator(".codes li")).to_have_count(10)
        check_looks(theirs)
        app.recovery_codes = theirs.locator(".codes li").all_inner_texts()

    with browser.new_context(base_url=stack.base_url, viewport=PHONE) as context:
        theirs = context.new_page()
        theirs.goto("/admin/payments/payment/")
        theirs.get_by_label("Username").fill("somsri")
        theirs.get_by_label("Password").fill(PASSWORD)
        theirs.get_by_role("button", name="Log in").click()
        check_looks(theirs)
        theirs.get_by_label("Code").fill("000 000")
        theirs.get_by_role("button", name="Continue").click()
        expect(theirs.locator(".errorlist")).to_contain_text("The code is wrong")
        theirs.get_by_label("Code").fill(app.next_code())
        theirs.get_by_role("button", name="Continue").click()
        theirs.wait_for_url("**/admin/payments/payment/")
        theirs.goto("/admin/account/")
        expect(theirs.locator(".sessions li")).to_have_count(2)
        theirs.get_by_role("button", name="End all others").click()
        expect(theirs.locator(".sessions li")).to_have_count(1)
