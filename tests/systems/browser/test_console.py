"""What support staff do every day, in a real browser on a whole instance."""

import csv
import re
from datetime import datetime
from itertools import count
from typing import Any
from zipfile import ZipFile

import pytest
from playwright.sync_api import Page, expect

from core.clock import BANGKOK
from tests.browser.conftest import DESKTOP, PHONE, WIDE, serious_faults
from tests.flows.conftest import ShopClient
from tests.stack import wait_until
from tests.webhook_receiver import Receiver, Reply

pytestmark = pytest.mark.slow
LISTS = [
    *("payments/payment", "refunds/refund", "withdrawals/withdrawal", "approvals/approval"),
    *("reconciliation/reconciliationexception", "reconciliation/banktransaction", "merchants/merchant"),
    *("merchants/apikey", "webhooks/endpoint", "webhooks/event", "webhooks/delivery"),
    *("reconciliation/statement", "auth/user", "audit_trail/auditrecord"),
]
numbers = count(1)


@pytest.fixture
def paid(shop_client: ShopClient) -> dict[str, Any]:
    code: dict[str, Any] = shop_client.qr_code(amount=99_900, reference=f"table {next(numbers)}")
    shop_client.pay(code)
    shop_client.wait_for_status(code, "succeeded")
    return {**code, **shop_client.get(f"/v1/payments/{code['payment_id']}")}


def search(page: Page, text: str) -> None:
    page.goto("/admin/")
    page.keyboard.press("/")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def run_act(page: Page, name: str) -> None:
    page.get_by_label("Reason", exact=True).fill("A test of the banner")
    page.get_by_role("button", name=name).click()
    expect(page.locator(".messagelist")).to_contain_text("done")


def test_refund_half_of_a_payment_that_was_found_by_its_reference(
    page: Page, shop_client: ShopClient, paid: dict[str, Any]
) -> None:
    search(page, paid["reference"])
    expect(page.locator(".lead")).to_contain_text("Paid: 999.00 THB on")
    page.get_by_role("link", name="Refund", exact=True).click()
    expect(page.locator(".lead")).to_contain_text("Up to 999.00 THB")
    page.get_by_label("Amount in baht").fill("499.50")
    page.get_by_label("Reason", exact=True).fill("The soup was cold")
    page.get_by_role("button", name="Refund").click()
    expect(page.locator(".messagelist")).to_contain_text("Refund: done.")
    (refund,) = shop_client.get(f"/v1/refunds?payment_id={paid['payment_id']}")["refunds"]
    assert refund["amount"] == 49_950
    expect(page.locator("#timeline")).to_contain_text("refund.created")
    expect(page.locator("#staff-acts")).to_contain_text("The soup was cold")


def test_failed_delivery_is_sent_again(page: Page, shop_client: ShopClient, endpoint: Receiver) -> None:
    hook = shop_client.post("/v1/webhooks", {"url": endpoint.url(), "events": ["payment.succeeded"]})
    endpoint.wait_for(lambda requests: len(requests) > 0)
    endpoint.on("/hook", Reply(status=500))
    code = shop_client.qr_code(amount=99_900, reference=f"window {next(numbers)}")
    shop_client.pay(code)
    endpoint.wait_for(lambda requests: any(b"payment.succeeded" in each.body for each in requests))
    endpoint.on("/hook", Reply(status=200))
    search(page, code["payment_id"])
    page.get_by_role("link", name="payment.succeeded", exact=True).first.click()
    page.get_by_role("link", name="Send again").click()
    page.get_by_label("Reason", exact=True).fill("The shop repaired its server")
    before = len(endpoint.requests)
    page.get_by_role("button", name="Send again").click()
    expect(page.locator(".messagelist")).to_contain_text("Send again: done.")
    endpoint.wait_for(lambda requests: len(requests) > before)
    shop_client.delete(f"/v1/webhooks/{hook['webhook_id']}")


def test_money_after_expiry_is_accepted(page: Page, shop_client: ShopClient) -> None:
    code = shop_client.qr_code(amount=55_500, reference=f"late {next(numbers)}")
    shop_client.pay(code, "late")
    wait_until(lambda: bool(shop_client.get(f"/v1/payments/{code['payment_id']}")["exceptions"]), 60)
    page.goto("/admin/")
    page.get_by_role("link", name=re.compile("^Exceptions")).last.click()
    page.get_by_role("link", name=re.compile("Paid after expiry")).first.click()
    page.get_by_role("link", name="Accept").click()
    page.get_by_label("Reason").fill("The customer has the goods")
    page.get_by_role("button").last.click()
    expect(page.locator(".messagelist")).to_be_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_the_screen(page: Page, paid: dict[str, Any], width: int) -> None:
    page.set_viewport_size(DESKTOP if width == DESKTOP["width"] else PHONE)
    payment = f"/admin/search/?q={paid['payment_id']}"
    for path in ["/admin/", payment, *(f"/admin/{each}/" for each in LISTS)]:
        page.goto(path)
        assert page.evaluate(WIDE) == 0, path


def test_page_of_an_exception_fits_a_phone(page: Page, shop_client: ShopClient) -> None:
    code = shop_client.qr_code(amount=77_700, reference=f"phone {next(numbers)}")
    shop_client.pay(code, "over")
    wait_until(lambda: bool(shop_client.get(f"/v1/payments/{code['payment_id']}")["exceptions"]), 60)
    page.set_viewport_size(PHONE)
    search(page, code["payment_id"])
    page.locator("#content a[href*='/reconciliationexception/']").first.click()
    expect(page.get_by_role("link", name="Return the excess")).to_be_visible()
    assert page.evaluate(WIDE) == 0


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_banner_of_paused_money_is_above_the_content(page: Page, paid: dict[str, Any], size: Any) -> None:
    page.set_viewport_size(size)
    page.goto("/admin/transfers/safemode/do/pause/")
    run_act(page, "Pause all outgoing money")
    try:
        for path in ("/admin/", "/admin/payments/payment/", f"/admin/search/?q={paid['payment_id']}"):
            page.goto(path)
            header, banner, content = (
                page.locator(each).bounding_box() for each in ("#header", ".safe-mode", "#content")
            )
            assert header and banner and content
            assert header["y"] + header["height"] <= banner["y"]
            assert banner["y"] + banner["height"] <= content["y"]
            assert (banner["x"], banner["width"]) == (content["x"], content["width"])
    finally:
        page.locator(".safe-mode a").click()
        page.get_by_role("link", name="Resume outgoing money").click()
        run_act(page, "Resume outgoing money")
    expect(page.locator(".safe-mode")).to_have_count(0)


def test_phone_has_a_menu_and_rows_as_cards(page: Page, paid: dict[str, Any]) -> None:
    page.set_viewport_size(PHONE)
    page.goto("/admin/payments/payment/")
    menu = page.locator("#menu")
    expect(menu).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    menu.get_by_role("link", name="Refunds").click()
    page.wait_for_url("**/refunds/refund/")
    page.goto("/admin/payments/payment/")
    expect(page.locator("#result_list tbody tr").first).to_have_css("display", "block")
    assert page.locator("#result_list td.field-status_now").first.get_attribute("data-title") == "Status"


def test_keys_move_through_a_list_and_copy_whole_ids(page: Page, paid: dict[str, Any]) -> None:
    page.goto("/admin/payments/payment/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("#result_list tbody tr").first).to_have_class(re.compile("chosen"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/change/**")
    page.goto(f"/admin/payments/payment/?q={paid['payment_id']}")
    page.locator("#result_list button.copy").first.click()
    assert page.evaluate("navigator.clipboard.readText()") == paid["payment_id"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_have_no_serious_fault_for_people_with_disabilities(
    page: Page, paid: dict[str, Any], theme: Any
) -> None:
    page.emulate_media(color_scheme=theme)
    payment = f"/admin/search/?q={paid['payment_id']}"
    faults = {}
    for path in ["/admin/", payment, *(f"/admin/{each}/" for each in LISTS[:8])]:
        page.goto(path)
        faults[path] = serious_faults(page)
    assert {path: found for path, found in faults.items() if found} == {}


def test_month_is_exported_for_the_accountant(
    page: Page, shop_client: ShopClient, paid: dict[str, Any]
) -> None:
    page.goto("/admin/")
    page.get_by_role("link", name="Statements").click()
    page.get_by_role("link", name="Monthly report").click()
    today = datetime.now(BANGKOK)
    page.get_by_label("Month").fill(f"{today:%Y-%m}")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Agrees with the ledger").first).to_be_visible()
    assert page.evaluate(WIDE) == 0
    assert serious_faults(page) == []
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    with ZipFile(download.value.path()) as pack:
        assert pack.namelist() == ["test.csv", "lines.csv"]  # of the money that the console shows
    page.goto(f"/admin/payments/payment/?q={paid['payment_id']}")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    [row] = csv.DictReader(download.value.path().read_text("utf-8-sig").splitlines())
    assert (row["Id"], row["Amount (THB)"]) == (paid["payment_id"], "999.00")
