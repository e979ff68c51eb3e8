"""Refunds from the admin of the shop, whole and in part, and what the bank says of them later."""

from typing import Any

import pytest

from tests.flows import flawed_proxy
from tests.stack import wait_until
from tests.systems.medusa.conftest import Checkout, Shop
from tests.systems.medusa.medusa import RefusedError

pytestmark = pytest.mark.slow


def refund(shop: Shop, order: dict[str, Any], amount: float) -> None:
    """Refund as the page of the order does."""
    shop.medusa.admin("POST", f"/payments/{shop.payment(order)['id']}/refund", {"amount": amount})


def refunds_of(shop: Shop, checkout: Checkout) -> list[tuple[int, str]]:
    """The refunds that the service has, the first one first."""
    found = shop.client.get(f"/v1/refunds?payment_id={checkout.payment_id}")["refunds"]
    return [(each["amount"], each["status"]) for each in reversed(found)]


def amounts(shop: Shop, order: dict[str, Any]) -> list[float]:
    """The refunds that the shop has."""
    return sorted(each["amount"] for each in shop.payment(order)["refunds"])


def test_staff_refund_a_part_and_then_the_rest(shop: Shop) -> None:
    checkout, order = shop.paid_order()
    refund(shop, order, 50.05)
    assert shop.wait_for_order(checkout)["payment_status"] == "partially_refunded"
    refund(shop, order, 100.20)
    with pytest.raises(RefusedError):
        refund(shop, order, 1)
    assert shop.wait_for_order(checkout)["payment_status"] == "refunded"
    wait_until(lambda: refunds_of(shop, checkout) == [(5_005, "completed"), (10_020, "completed")], 60)
    shop.read_events()
    assert shop.notes(checkout) == []
    assert shop.payment(order)["data"]["amount_refunded"] == 15_025


def test_order_that_is_canceled_is_refunded(shop: Shop) -> None:
    checkout, order = shop.paid_order()
    shop.medusa.admin("POST", f"/orders/{order['id']}/cancel", {})
    wait_until(lambda: refunds_of(shop, checkout) == [(15_025, "completed")], 60)


def test_parts_of_a_satang_are_refused(shop: Shop) -> None:
    checkout, order = shop.paid_order()
    with pytest.raises(RefusedError, match="at most two decimals"):
        refund(shop, order, 1.005)
    assert (refunds_of(shop, checkout), amounts(shop, order)) == ([], [])


def test_refund_whose_answer_was_lost_is_sent_once(shop: Shop) -> None:
    """Medusa takes the refund off the payment when its answer is lost."""
    checkout, order = shop.paid_order()
    refund(shop, order, 10)
    payment_id = shop.payment(order)["id"]
    path = f"/payments/{payment_id}/refund"
    shop.proxy.flaws = [flawed_proxy.forwards, flawed_proxy.loses_answer, flawed_proxy.loses_answer]
    with pytest.raises(RefusedError, match="cannot be used at this moment"):
        shop.medusa.admin("POST", path, {"amount": 20})
    assert amounts(shop, order) == [10]
    with pytest.raises(RefusedError, match=r"An earlier refund of 20\.00 THB was sent"):
        refund(shop, order, 30)
    refund(shop, order, 20)
    refund(shop, order, 20)
    assert amounts(shop, order) == [10, 20, 20]
    assert [amount for amount, _ in refunds_of(shop, checkout)] == [1_000, 2_000, 2_000]


def test_refusal_of_the_service_leaves_no_refund(shop: Shop) -> None:
    """Part of the money went back without Medusa."""
    checkout, order = shop.paid_order()
    shop.client.post("/v1/refunds", {"payment_id": checkout.payment_id, "amount": 15_000})
    with pytest.raises(RefusedError, match="The payment service refused"):
        refund(shop, order, 150.25)
    assert amounts(shop, order) == []
    refund(shop, order, 0.25)
    shop.wait_for_note(checkout, "150.00 THB went back to the customer without Medusa")


def test_money_that_the_bank_takes_back_is_a_notification(shop: Shop) -> None:
    checkout = shop.check_out()
    shop.pay(checkout, "reversed")
    shop.wait_for_note(checkout, "150.25 THB went back to the customer without Medusa")


def test_refund_that_fails_is_a_notification(shop: Shop) -> None:
    """The customer names an account to which the sandbox bank cannot send."""
    checkout = shop.check_out()
    shop.pay(checkout, "payer_unknown")
    order = shop.wait_for_order(checkout)
    refund(shop, order, 150.25)
    (sent,) = shop.payment(order)["data"]["refunds"]
    account = {"bank_code": "SCB", "bank_account": "4050000001", "account_name": "Somchai Jaidee"}
    shop.client.post(f"/v1/refunds/{sent['refund_id']}/destination", account)
    shop.wait_for_note(checkout, "The refund of 150.25 THB failed: you have the money again")
