"""The daily tasks of staff in a browser, and how many clicks each takes: docs/staff-tasks.md."""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core.clock import BANGKOK
from tests.browser.conftest import DESKTOP
from tests.flows.conftest import ShopClient
from tests.stack import ROOT, Stack, wait_until
from tests.systems.browser.test_approvals import LIMIT, open_exception
from tests.systems.browser.test_login import choose_password, invite
from tests.webhook_receiver import Receiver, Reply

pytestmark = pytest.mark.slow
MOST = 4
EXCEPTIONS = "/admin/reconciliation/reconciliationexception/"
numbers = count(1)


def declared() -> dict[str, int]:
    """The clicks of each task by the table."""
    rows = re.findall(
        r"^\| ([^|]+) \| (\d+) \|", (ROOT / "docs" / "staff-tasks.md").read_text(), re.MULTILINE
    )
    return {task: int(clicks) for task, clicks in rows}


class Staff:
    """Somebody at the first page of the console, whose clicks are counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0
        page.goto("/admin/")

    def click(self, name: str | re.Pattern[str], role: Any = "link", within: str = "body") -> None:
        self.press(self.page.locator(within).get_by_role(role, name=name, exact=isinstance(name, str)).first)

    def press(self, found: Locator) -> None:
        found.click()
        self.clicks += 1

    def search(self, text: str) -> None:
        self.page.keyboard.press("/")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(lambda url: not url.endswith("/admin/"))
        self.clicks += 1

    def fill(self, label: str, text: str) -> None:
        self.page.get_by_label(label, exact=True).fill(text)

    def succeeded(self) -> None:
        expect(self.page.locator(".messagelist .success")).to_be_visible()

    def check(self, task: str) -> None:
        assert self.clicks == declared()[task]
        assert self.clicks <= MOST


@pytest.fixture
def staff(page: Page) -> Staff:
    return Staff(page)


@pytest.fixture
def paid(shop_client: ShopClient) -> dict[str, Any]:
    """A paid code with an amount and a reference of its own."""
    number = next(numbers)
    code: dict[str, Any] = shop_client.qr_code(amount=70_000 + number, reference=f"task {number}")
    reported = shop_client.pay(code)
    shop_client.wait_for_status(code, "succeeded")
    return {**code, "reference": f"task {number}", "bank_id": reported["bank_transaction_id"]}


def report(shop_client: ShopClient, page: Page, scenario: str, amount: int) -> None:
    """The bank reports money that becomes an exception, and the list shows it."""
    code = shop_client.qr_code(amount=amount, reference=f"task {next(numbers)}")
    shop_client.pay(code, scenario)
    search = code["payment_id"] if scenario != "unknown_reference" else f"{amount // 100}.{amount % 100:02}"

    def is_listed() -> bool:
        page.goto(f"{EXCEPTIONS}?q={search}")
        return page.locator("#result_list tbody tr").count() > 0

    wait_until(is_listed, 60)


def open_newest_exception(staff: Staff, amount: str) -> None:
    """From the first page: the list, and the exception with this amount."""
    staff.page.goto("/admin/")
    staff.click(re.compile("^Exceptions"), within="#menu")
    staff.press(staff.page.locator("#result_list tr", has_text=amount).locator("th a, td a").first)


def test_table_names_each_task_and_none_takes_over_four_clicks() -> None:
    assert len(declared()) == 19
    assert max(declared().values()) <= MOST


def test_find_a_payment_by_its_reference(staff: Staff, paid: dict[str, Any]) -> None:
    staff.search(paid["reference"])
    expect(staff.page.locator("h1")).to_contain_text(paid["reference"])
    staff.check("Find a payment by the shop's reference")


def test_find_a_payment_by_its_amount(staff: Staff, paid: dict[str, Any]) -> None:
    staff.search(f"{paid['amount'] / 100:.2f}")
    staff.press(staff.page.locator("a[href*='/payments/payment/']", has_text=re.compile("pay_")).first)
    expect(staff.page.locator("h1")).to_contain_text(paid["reference"])
    staff.check("Find a payment by its amount in baht")


def test_find_a_payment_by_the_bank_reference(staff: Staff, paid: dict[str, Any]) -> None:
    staff.search(paid["bank_id"])
    staff.press(staff.page.locator("#content a[href*='/payments/payment/']").first)
    expect(staff.page.locator("h1")).to_contain_text(paid["reference"])
    staff.check("Find a payment by the bank's reference")


def test_find_payments_by_the_name_of_the_payer(
    staff: Staff, shop_client: ShopClient, paid: dict[str, Any]
) -> None:
    name = shop_client.get(f"/v1/payments/{paid['payment_id']}")["payer"]["name"]
    staff.search(name.split()[-1])
    staff.press(staff.page.locator("#content a[href*='/payments/payment/']").first)
    expect(staff.page.locator("#content")).to_contain_text(name)
    staff.check("Find payments of a payer by name")


def test_why_a_payment_is_pending(staff: Staff, shop_client: ShopClient) -> None:
    staff.search(shop_client.qr_code(amount=100)["payment_id"])
    expect(staff.page.locator(".lead").first).to_contain_text("Not paid yet")
    staff.check("Why is a payment pending?")


@pytest.fixture
def failed_event(shop_client: ShopClient, endpoint: Receiver) -> Iterator[dict[str, Any]]:
    """A paid code whose event the shop's server refuses."""
    hook = shop_client.post("/v1/webhooks", {"url": endpoint.url(), "events": ["payment.succeeded"]})
    endpoint.wait_for(lambda requests: len(requests) > 0)
    endpoint.on("/hook", Reply(status=500))
    code: dict[str, Any] = shop_client.qr_code(amount=100)
    shop_client.pay(code)
    endpoint.wait_for(lambda requests: any(b"payment.succeeded" in each.body for each in requests))
    yield code
    shop_client.delete(f"/v1/webhooks/{hook['webhook_id']}")


def test_why_a_webhook_failed(staff: Staff, failed_event: dict[str, Any]) -> None:
    staff.search(failed_event["payment_id"])
    expect(staff.page.locator(".columns")).to_contain_text("HTTP 500")
    staff.check("Why did a webhook fail?")


def test_send_a_webhook_again(staff: Staff, failed_event: dict[str, Any]) -> None:
    staff.search(failed_event["payment_id"])
    staff.click("payment.succeeded")
    staff.click("Send again")
    staff.fill("Reason", "The shop repaired its server")
    staff.click("Send again", "button")
    staff.succeeded()
    staff.check("Send a webhook again")


def test_refund_half_of_a_payment(staff: Staff, paid: dict[str, Any]) -> None:
    staff.search(paid["payment_id"])
    staff.click("Refund", within="#content")
    staff.page.get_by_label("Amount in baht").fill("350.00")
    staff.fill("Reason", "The soup was cold")
    staff.click("Refund", "button")
    staff.succeeded()
    staff.check("Refund half of a payment")


@pytest.mark.parametrize(
    ("scenario", "amount", "shown", "action", "task"),
    [
        ("late", 91_100, "911.00", "Accept", "Accept money that came late"),
        ("over", 92_200, "1,844.00", "Accept", "Accept an amount that is too high"),
        (
            "over",
            94_400,
            "1,888.00",
            "Return the excess",
            "Keep what was asked for, send back the excess",
        ),
    ],
)
def test_accept_money_that_does_not_match(
    staff: Staff, shop_client: ShopClient, scenario: str, amount: int, shown: str, action: str, task: str
) -> None:
    report(shop_client, staff.page, scenario, amount)
    open_newest_exception(staff, shown)
    staff.click(action)
    staff.page.get_by_label("Reason").fill("The customer has the goods")
    staff.click(action, "button")
    staff.succeeded()
    staff.check(task)


def test_attach_money_of_an_unknown_reference(staff: Staff, shop_client: ShopClient) -> None:
    report(shop_client, staff.page, "unknown_reference", 93_300)
    open_newest_exception(staff, "933.00")
    staff.press(staff.page.locator("table").get_by_role("link", name="Attach", exact=True).first)
    staff.page.get_by_label("Reason").fill("The payer showed the slip")
    staff.click("Attach to this payment", "button")
    staff.succeeded()
    staff.check("Find the payment of an unknown reference")


def test_write_a_note_about_a_payment(staff: Staff, paid: dict[str, Any]) -> None:
    staff.search(paid["payment_id"])
    staff.click("Write a note")
    staff.fill("Note", "The customer called")
    staff.click("Write a note", "button")
    expect(staff.page.locator("#notes")).to_contain_text("The customer called")
    staff.check("Write a note about a payment")


def test_ask_finance_about_an_exception(staff: Staff, shop_client: ShopClient) -> None:
    report(shop_client, staff.page, "unknown_reference", 95_500)
    open_newest_exception(staff, "955.00")
    staff.click("Ask finance")
    staff.fill("Note", "May I send it back?")
    staff.click("Ask finance", "button")
    expect(staff.page.locator("#notes")).to_contain_text("Handed over to finance")
    staff.check("Ask finance about an exception")


def test_hand_over_an_exception_and_answer_it(staff: Staff, stack: Stack, shop_client: ShopClient) -> None:
    report(shop_client, staff.page, "unknown_reference", 96_600)
    open_newest_exception(staff, "966.00")
    staff.click("Hand over")
    staff.page.get_by_label("To", exact=True).select_option(f"staff:{stack.demo['admin_user']}")
    staff.fill("Note", "Whose money is it?")
    staff.click("Hand over", "button")
    staff.succeeded()
    staff.check("Hand an exception over to a colleague")
    staff = Staff(staff.page)
    staff.click(re.compile("^For you "), within="#content")
    staff.click(re.compile("^Exception "), within="#result_list")
    staff.click("Answer and close")
    staff.fill("Note", "The temple fair")
    staff.click("Answer and close", "button")
    expect(staff.page.locator("#notes")).not_to_contain_text("not answered yet")
    staff.check("Answer what was handed over to you")


def test_approve_outgoing_money(
    stack: Stack, browser: Browser, staff: Staff, shop_client: ShopClient
) -> None:
    shop_client.pay(code := shop_client.qr_code(amount=LIMIT + 200), "late")
    link = invite(staff.page, f"chai{next(numbers)}", role="finance")
    with browser.new_context(base_url=stack.base_url, viewport=DESKTOP) as context:
        asking = context.new_page()
        choose_password(asking, link)
        open_exception(asking, code["payment_id"])
        asking.get_by_role("link", name="Record a manual return").click()
        asking.get_by_label("Bank's reference").fill("FT-1")
        asking.get_by_label("Reason").fill("Sent in online banking")
        asking.get_by_role("button", name="Record a manual return").click()
        expect(asking.locator(".messagelist")).to_contain_text("a second person must approve it first")
    staff.page.goto("/admin/")
    staff.click(re.compile("^Approvals"), within="#menu")
    staff.click("50,002.00 THB")
    staff.click("Approve", within="#content")
    staff.page.get_by_label("Reason").fill("Called the payer")
    staff.click("Approve", "button")
    staff.succeeded()
    staff.check("Approve outgoing money of somebody else")


def test_volume_of_yesterday(staff: Staff) -> None:
    staff.click("Yesterday")
    expect(staff.page.locator(".choices [aria-current]").first).to_have_text("Yesterday")
    expect(staff.page.locator(".tile").first).to_contain_text("Received")
    staff.check("How much came in yesterday?")


def test_month_as_csv(staff: Staff, paid: dict[str, Any]) -> None:
    staff.click("Statements", within="#menu")
    staff.click("Monthly report")
    staff.page.get_by_label("Month").fill(f"{datetime.now(BANGKOK):%Y-%m}")
    staff.click("Show", "button")
    with staff.page.expect_download() as download:
        staff.click("CSV", "button")
    assert download.value.suggested_filename.startswith("accountant-")
    staff.check("A month as CSV")
