"""Refunds from the page of a payment, whole and in part, and what the bank says of them later."""

from typing import Any

import pytest

from tests.flows import flawed_proxy
from tests.stack import wait_until
from tests.systems.odoo.conftest import BAHT, Payment, Shop
from tests.systems.odoo.odoo import RefusedError

pytestmark = pytest.mark.slow


def refund(shop: Shop, payment: Payment, amount: float) -> None:
    """Refund by the dialog of the page of a payment."""
    domain = [["payment_transaction_id", "=", payment.tx_id]]
    (posted,) = shop.odoo.call("account.payment", "search", domain)
    wizard = shop.odoo.call(
        "payment.refund.wizard", "create", {"payment_id": posted, "amount_to_refund": amount}
    )
    shop.odoo.call("payment.refund.wizard", "action_refund", [wizard])


def refunds_of(shop: Shop, payment: Payment) -> list[dict[str, Any]]:
    """The refunds that the shop has, the first one first."""
    domain = [["source_transaction_id", "=", payment.tx_id]]
    names = ["amount", "state", "state_message", "thai_qr_id", "is_post_processed"]
    found: list[dict[str, Any]] = shop.odoo.call(
        "payment.transaction", "search_read", domain, names, order="id"
    )
    return found


def states(shop: Shop, payment: Payment) -> list[tuple[float, str]]:
    return [(each["amount"], each["state"]) for each in refunds_of(shop, payment)]


def sent(shop: Shop, payment: Payment) -> list[int]:
    """The refunds that the service has."""
    path = f"/v1/refunds?payment_id={payment.code['payment_id']}"
    return [each["amount"] for each in reversed(shop.client.get(path)["refunds"])]


def test_staff_refund_a_part_and_then_the_rest(shop: Shop) -> None:
    payment = shop.paid("account.move")
    refund(shop, payment, 50.05)
    wait_until(lambda: states(shop, payment) == [(-50.05, "done")], 60)
    wait_until(lambda: all(each["is_post_processed"] for each in refunds_of(shop, payment)), 60)
    assert shop.posting(payment)["amount_available_for_refund"] == pytest.approx(100.20)
    refund(shop, payment, 100.20)
    wait_until(lambda: states(shop, payment) == [(-50.05, "done"), (-100.20, "done")], 60)
    wait_until(lambda: all(each["is_post_processed"] for each in refunds_of(shop, payment)), 60)
    assert sent(shop, payment) == [5_005, 10_020]
    with pytest.raises(RefusedError, match="must be positive"):
        refund(shop, payment, 1)
    shop.wait_for_note(payment, "has been confirmed")


def test_refund_whose_answer_was_lost_is_sent_once(shop: Shop) -> None:
    payment = shop.paid()
    shop.proxy.flaws = [flawed_proxy.loses_answer, flawed_proxy.loses_answer]
    refund(shop, payment, 20)
    assert states(shop, payment) in ([(-20, "pending")], [(-20, "done")])
    shop.read_events()
    wait_until(lambda: states(shop, payment) == [(-20, "done")], 60)
    assert sent(shop, payment) == [2_000]


def test_refund_that_never_arrived_is_sent_a_minute_later(shop: Shop) -> None:
    payment = shop.paid()
    shop.proxy.flaws = [flawed_proxy.cuts_request, flawed_proxy.cuts_request]
    refund(shop, payment, 20)
    (waiting,) = refunds_of(shop, payment)
    assert (waiting["state"], sent(shop, payment)) == ("pending", [])
    assert "is sent again" in waiting["state_message"]
    shop.read_events()
    wait_until(lambda: states(shop, payment) == [(-20, "done")], 60)
    assert sent(shop, payment) == [2_000]


def test_refusal_of_the_service_leaves_no_refund(shop: Shop) -> None:
    """Part of the money went back without Odoo."""
    payment = shop.paid()
    with shop.without_webhooks():
        shop.client.post("/v1/refunds", {"payment_id": payment.code["payment_id"], "amount": 15_000})
        with pytest.raises(RefusedError, match="The payment service refused"):
            refund(shop, payment, BAHT)
        assert states(shop, payment) == []
        wait_until(
            lambda: (
                shop.client.get(f"/v1/payments/{payment.code['payment_id']}")["amount_refunded"] == 15_000
            ),
            60,
        )
        shop.read_events()
    assert states(shop, payment) == [(-150, "done")]


def test_money_that_the_bank_takes_back_is_a_refund(shop: Shop) -> None:
    payment = shop.start_order()
    shop.pay(payment, "reversed")
    wait_until(lambda: states(shop, payment) == [(-BAHT, "done")], 90)
    assert shop.wait_for_posting(payment)["amount"] == BAHT


def test_refund_without_an_account_waits_and_one_that_fails_is_told(shop: Shop) -> None:
    """The customer names an account to which the sandbox bank cannot send."""
    payment = shop.start_order()
    shop.pay(payment, "payer_unknown")
    shop.wait_for_posting(payment)
    refund(shop, payment, BAHT)
    (waiting,) = refunds_of(shop, payment)
    assert waiting["state"] == "pending"
    assert "did not say which account the customer paid from" in waiting["state_message"]
    account = {"bank_code": "SCB", "bank_account": "4050000001", "account_name": "Somchai Jaidee"}
    shop.client.post(f"/v1/refunds/{waiting['thai_qr_id']}/destination", account)
    wait_until(lambda: states(shop, payment) == [(-BAHT, "error")], 90)
    shop.wait_for_note(payment, "are yours again")
    assert shop.posting(payment)["amount_available_for_refund"] == BAHT


def test_refund_that_was_cancelled_is_found_by_the_button(shop: Shop) -> None:
    payment = shop.start_order()
    shop.pay(payment, "payer_unknown")
    shop.wait_for_posting(payment)
    refund(shop, payment, 10)
    (waiting,) = refunds_of(shop, payment)
    shop.client.post(f"/v1/refunds/{waiting['thai_qr_id']}/cancel", {})
    shop.odoo.call("payment.transaction", "action_thai_qr_refresh", [waiting["id"]])
    assert states(shop, payment) == [(-10, "cancel")]
