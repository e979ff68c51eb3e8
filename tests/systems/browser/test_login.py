"""A colleague is invited, and logs in with an authenticator app or a passkey, in real browsers."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.authenticator_app import App
from tests.browser.conftest import MAKE_STALE, PHONE, WIDE, serious_faults
from tests.stack import Stack

pytestmark = pytest.mark.slow
PASSWORD = "three-elephants-crossing"


@pytest.fixture
def theirs(stack: Stack, browser: Browser) -> Iterator[Page]:
    """A page of the colleague. Passkeys need a host with a name."""
    address = stack.base_url.replace("127.0.0.1", "localhost")
    with browser.new_context(base_url=address, viewport=PHONE) as context:
        yield context.new_page()


def check_looks(page: Page) -> None:
    assert serious_faults(page) == []
    assert page.evaluate(WIDE) == 0


def invite(page: Page, name: str, role: str = "viewer") -> str:
    page.goto("/admin/auth/user/")
    page.get_by_role("link", name="Invite a colleague").click()
    check_looks(page)
    page.get_by_label("Username").fill(name)
    page.get_by_label(role).check()
    page.get_by_role("button", name="Make the link").click()
    return page.get_by_label("Link").input_value()


def choose_password(page: Page, link: str) -> None:
    page.goto(link[link.index("/admin/") :])
    check_looks(page)
    page.get_by_label("New password:").fill(PASSWORD)
    page.get_by_label("New password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#menu")).to_be_attached()


def accept(page: Page, link: str) -> App:
    """Choose a password, and set up an app."""
    choose_password(page, link)
    page.goto("/admin/account/")
    check_looks(page)
    page.get_by_role("link", name="Set up an authenticator app").click()
    check_looks(page)
    app = App(page.locator(".secret code").inner_text().replace(" ", ""), [])
    page.get_by_label("Code").fill(app.code())
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".codes li")).to_have_count(10)
    check_looks(page)
    app.recovery_codes = page.locator(".codes li").all_inner_texts()
    return app


def enter_password(page: Page, name: str) -> None:
    page.goto("/admin/payments/payment/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    check_looks(page)


def test_invited_colleague_logs_in_with_a_second_factor(page: Page, theirs: Page) -> None:
    app = accept(theirs, invite(page, "somsri"))
    theirs.context.clear_cookies()
    enter_password(theirs, "somsri")
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


def test_passkey_is_the_second_factor_and_confirms_acts(stack: Stack, page: Page, theirs: Page) -> None:
    device = theirs.context.new_cdp_session(theirs)
    device.send("WebAuthn.enable")
    kind = {"protocol": "ctap2", "transport": "internal", "hasUserVerification": True}
    kind |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    device.send("WebAuthn.addVirtualAuthenticator", {"options": kind})
    app = accept(theirs, invite(page, "malee"))
    theirs.goto("/admin/account/")
    theirs.get_by_role("link", name="Add a passkey").click()
    check_looks(theirs)
    expect(theirs.get_by_label("Name")).to_have_value("Chrome, Linux")
    theirs.get_by_label("Name").fill("Laptop of Malee")
    theirs.get_by_label("Name").press("Enter")
    expect(theirs.get_by_text("Laptop of Malee")).to_be_visible()
    check_looks(theirs)
    theirs.context.clear_cookies()
    enter_password(theirs, "malee")
    theirs.get_by_role("button", name="Use a passkey").click()
    theirs.wait_for_url("**/admin/payments/payment/")
    stack.manage("shell", "-c", MAKE_STALE.format("malee"))
    theirs.goto("/admin/account/passkeys/add/")
    expect(theirs.get_by_role("heading", name="Is it you?")).to_be_visible()
    check_looks(theirs)
    theirs.get_by_role("link", name="Use a passkey").click()
    theirs.get_by_role("button", name="Use a passkey").click()
    expect(theirs.get_by_role("button", name="Add a passkey")).to_be_visible()
    theirs.context.clear_cookies()
    enter_password(theirs, "malee")
    theirs.get_by_label("Code").fill(app.recovery_codes[0])
    theirs.get_by_role("button", name="Continue").click()
    theirs.wait_for_url("**/admin/payments/payment/")
