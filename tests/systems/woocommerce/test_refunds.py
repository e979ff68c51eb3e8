"""Refunds from the page of an order, whole and in part, and what the bank says of them later."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.flows import flawed_proxy
from tests.flows.flawed_proxy import FlawedProxy
from tests.stack import wait_until
from tests.systems.woocommerce.conftest import Shop, keep
from tests.systems.woocommerce.test_payments import count
from tests.systems.woocommerce.wordpress import has_note
from tests.webhook_receiver import ReceivedRequest, Script

pytestmark = pytest.mark.slow


def refund(shop: Shop, order_id: int, amount: str) -> str:
    """Refund as the page of the order does; return its error, or an empty text."""
    error: str = shop.site.php("return refund( ...$arguments );", order_id, amount)
    return error


def answers_late(proxy: FlawedProxy, request: ReceivedRequest) -> Script:
    return replace(proxy.forward(request), delay=4)


def refunds_of(shop: Shop, order_id: int) -> list[tuple[int, str]]:
    """The refunds that the service made for an order, the first one first."""
    payment_id = shop.site.order(order_id)["transaction_id"]
    found = shop.client.get(f"/v1/refunds?payment_id={payment_id}")["refunds"]
    return [(each["amount"], each["status"]) for each in reversed(found)]


def test_staff_refund_a_part_and_then_the_rest(shop: Shop) -> None:
    order_id = shop.paid_order()
    assert refund(shop, order_id, "50.05") == ""
    order = shop.site.wait_for_note(order_id, "the customer has got 50.05 THB")
    assert (order["status"], count(order, "50.05 THB are on their way")) == ("processing", 1)
    assert refund(shop, order_id, "100.20") == ""
    order = shop.site.wait_for_note(order_id, "the customer has got 100.20 THB")
    assert order["status"] == "refunded"
    assert refunds_of(shop, order_id) == [(5_005, "completed"), (10_020, "completed")]
    assert [amount for amount, _ in order["refunds"]] == ["100.20", "50.05"]
    assert all(refund_id.startswith("ref_") for _, refund_id in order["refunds"])


def test_staff_refund_on_the_page_of_the_order(shop: Shop, pictures: Path | None) -> None:
    order_id = shop.paid_order()
    page = shop.staff
    page.goto(f"/wp-admin/admin.php?page=wc-orders&action=edit&id={order_id}")
    page.get_by_role("button", name="Refund", exact=True).click()
    page.locator("input.refund_order_item_qty").first.fill("1")
    page.locator("input.refund_order_item_qty").first.dispatch_event("change")
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("button.do-api-refund").click()
    wait_until(lambda: bool(shop.site.order(order_id)["status"] == "refunded"), 60)
    shop.site.wait_for_note(order_id, "the customer has got 150.25 THB")
    page.reload()
    expect(page.get_by_text("the customer has got 150.25 THB")).to_be_visible()
    keep(page.locator("#woocommerce-order-notes"), pictures, "order")


def test_two_clicks_refund_once(shop: Shop) -> None:
    """The service answers slowly, so that the second click comes while the first one waits."""
    order_id = shop.paid_order()
    shop.proxy.flaws = [answers_late]
    with ThreadPoolExecutor(3) as pool:
        errors = list(pool.map(lambda _: refund(shop, order_id, "50.00"), range(3)))
    assert errors.count("") == 1
    assert errors.count("Another refund of this order is being sent. Load this page again.") == 2
    shop.site.wait_for_note(order_id, "the customer has got")
    assert refunds_of(shop, order_id) == [(5_000, "completed")]
    assert len(shop.site.order(order_id)["refunds"]) == 1


@pytest.mark.parametrize(
    "flaw", [flawed_proxy.loses_answer, flawed_proxy.fails], ids=lambda each: each.__name__
)
def test_lost_answer_refunds_once(shop: Shop, flaw: flawed_proxy.Flaw) -> None:
    order_id = shop.paid_order()
    shop.proxy.flaws = [flaw]
    assert refund(shop, order_id, "20.00") == ""
    with shop.without_webhooks():
        shop.proxy.flaws = [flaw, flaw]
        assert "does not answer" in refund(shop, order_id, "30.00")
        assert len(shop.site.order(order_id)["refunds"]) == 1
        assert "An earlier refund of 30.00 THB was sent" in refund(shop, order_id, "40.00")
        assert len(shop.site.order(order_id)["refunds"]) == 1
        assert refund(shop, order_id, "30.00") == ""
        assert refund(shop, order_id, "40.00") == ""
    shop.site.follow()
    assert [amount for amount, _ in refunds_of(shop, order_id)] == [2_000, 3_000, 4_000]
    assert len(shop.site.order(order_id)["refunds"]) == 3


def test_lost_answer_is_found_by_its_event(shop: Shop) -> None:
    order_id = shop.paid_order()
    shop.proxy.flaws = [flawed_proxy.loses_answer, flawed_proxy.loses_answer]
    assert "does not answer" in refund(shop, order_id, "150.25")
    order = shop.site.wait_for_status(order_id, "refunded")
    assert [amount for amount, _ in order["refunds"]] == ["150.25"]
    assert refunds_of(shop, order_id) == [(15_025, "completed")]


def test_request_that_never_arrived_is_sent_again(shop: Shop) -> None:
    order_id = shop.paid_order()
    shop.proxy.flaws = [flawed_proxy.cuts_request, flawed_proxy.cuts_request]
    assert "does not answer" in refund(shop, order_id, "10.00")
    assert refund(shop, order_id, "12.00") == ""
    assert [amount for amount, _ in refunds_of(shop, order_id)] == [1_200]


def test_refusal_leaves_the_order_as_it_was_and_the_next_refund_free(shop: Shop) -> None:
    order_id = shop.paid_order()
    payment_id = shop.site.order(order_id)["transaction_id"]
    with shop.without_webhooks():
        shop.client.post("/v1/refunds", {"payment_id": payment_id, "amount": 15_000})
        assert "The payment service refused:" in refund(shop, order_id, "150.25")
        assert shop.site.order(order_id)["refunds"] == []
        assert refund(shop, order_id, "0.25") == ""


def test_refund_that_was_made_elsewhere_is_added_to_the_order(shop: Shop) -> None:
    order_id = shop.paid_order()
    payment_id = shop.site.order(order_id)["transaction_id"]
    shop.client.post("/v1/refunds", {"payment_id": payment_id})
    order = shop.site.wait_for_status(order_id, "refunded")
    assert [amount for amount, _ in order["refunds"]] == ["150.25"]


def test_money_that_the_bank_takes_back_is_a_refund(shop: Shop) -> None:
    order_id, code = shop.open_order()
    shop.client.pay(code, "reversed")
    order = shop.site.wait_for_status(order_id, "refunded")
    assert [amount for amount, _ in order["refunds"]] == ["150.25"]


def test_refund_that_fails_is_taken_off_the_order(shop: Shop) -> None:
    """The customer names an account to which the sandbox bank cannot send."""
    order_id, code = shop.open_order()
    shop.client.pay(code, "payer_unknown")
    shop.site.wait_for_status(order_id, "processing")
    assert refund(shop, order_id, "150.25") == ""
    order = shop.site.order(order_id)
    assert (order["status"], has_note(order, "the bank did not say from which account")) == ("refunded", True)
    account = {"bank_code": "SCB", "bank_account": "4050000001", "account_name": "Somchai Jaidee"}
    shop.client.post(f"/v1/refunds/{order['refunds'][0][1]}/destination", account)
    order = shop.site.wait_for_note(order_id, "failed: 150.25 THB are in your balance again")
    assert (order["status"], order["refunds"]) == ("on-hold", [])


def test_staff_ask_for_a_refund_that_was_cancelled(shop: Shop) -> None:
    """No event tells of it."""
    order_id, code = shop.open_order()
    shop.client.pay(code, "payer_unknown")
    shop.site.wait_for_status(order_id, "processing")
    assert refund(shop, order_id, "50.00") == ""
    shop.client.post(f"/v1/refunds/{shop.site.order(order_id)['refunds'][0][1]}/cancel", {})
    page = shop.staff
    page.goto(f"/wp-admin/admin.php?page=wc-orders&action=edit&id={order_id}")
    page.locator("select[name=wc_order_action]").select_option(label="Ask the payment service again")
    page.locator("button.wc-reload").click()
    order = shop.site.wait_for_note(order_id, "of 50.00 THB was cancelled")
    assert order["refunds"] == []
