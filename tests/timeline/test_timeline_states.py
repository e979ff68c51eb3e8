"""Every state that a payment, its refunds and its money go through stands in the timeline."""

from collections.abc import Callable
from typing import Any

import pytest

from banks import TransferResult
from tests.conftest import SandboxBankClient, Shop
from tests.payments.card_builders import PATH, request
from tests.payments.conftest import acquirer, till
from tests.reconciliation.cast import Till, decide
from tests.reconciliation.console import staff_client
from tests.reconciliation.slips.test_slip_check import check, mini_qr, slip_id, told
from tests.refunds.builders import NOBODY, PAYEE, RefundShop, send_due_refunds
from tests.timeline.builders import entries, only_entry, types

pytestmark = pytest.mark.slow

__all__ = ["acquirer", "till"]
TILL_ID = {"X-Request-Id": "till-3.0042"}


def key_of(shop: Shop) -> str:
    return f"key:{shop.merchant.keys.get().public_id}"


@pytest.mark.parametrize(
    ("token", "last"), [("tok_test_visa", "payment.succeeded"), ("tok_test_declined", "payment.failed")]
)
def test_card_payment_entry_has_actor(till: Shop, token: str, last: str) -> None:
    response = till.post(PATH, request(token), **TILL_ID).json()
    payment_id = response.get("payment_id") or response["error"]["payment_id"]
    shown = [(each["type"], each["actor"], each["request_id"]) for each in entries(till, payment_id)]
    assert shown == [(each, key_of(till), "till-3.0042") for each in ("payment.pending", last)]


def test_payment_refunded_entry_comes_with_last_refund(
    shop: Shop, bank: SandboxBankClient, clock: Any, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1"), TransferResult("succeeded", "b-2")])
    counter = RefundShop(shop, bank)
    paid = counter.paid()
    for satang in (50_000, 100_000):
        assert "payment.refunded" not in types(shop, paid)
        clock.shift(60)
        last = counter.refund(paid, amount=satang)
        send_due_refunds()
    shown = only_entry(shop, paid, "payment.refunded")
    assert shown["details"] == {"refund_id": last["refund_id"]}
    assert shown["summary"] == "Fully refunded: 1,500.00 THB."
    assert types(shop, paid)[-2:] == ["refund.completed", "payment.refunded"]


def test_reversal_refunds_payment_with_bank_as_actor(shop: Shop, bank: SandboxBankClient) -> None:
    at_till = Till(shop, bank)
    credit = at_till.sold()
    at_till.takes_back(credit)
    assert only_entry(shop, str(credit.payment_id), "payment.refunded")["actor"] == "bank:sandbox"


def test_refund_destination_entry_is_shown(shop: Shop, bank: SandboxBankClient, clock: Any) -> None:
    counter = RefundShop(shop, bank)
    paid = counter.paid(payer=NOBODY)
    refund = counter.refund(paid)
    assert types(shop, paid)[-1] == "refund.created"
    clock.shift(60)
    counter.act(refund, "destination", PAYEE)
    assert types(shop, paid)[-1] == "refund.addressed"


def test_refund_with_account_has_no_destination_entry(shop: Shop, bank: SandboxBankClient) -> None:
    counter = RefundShop(shop, bank)
    paid = counter.paid()
    counter.refund(paid)
    assert "refund.addressed" not in types(shop, paid)


def test_return_overtaken_by_reversal_is_canceled(shop: Shop, bank: SandboxBankClient, clock: Any) -> None:
    at_till = Till(shop, bank)
    movement = at_till.late()
    decide("send_back", movement)
    clock.shift(60)
    at_till.takes_back(movement)
    payment_id = str(movement.payment_id)
    assert types(shop, payment_id)[-2:] == ["bank.notice", "return.canceled"]
    assert only_entry(shop, payment_id, "return.canceled")["actor"] == "bank:sandbox"


def test_slip_check_entry_has_actor(shop: Shop, bank: SandboxBankClient) -> None:
    code, slip = shop.qr_code(), slip_id()
    check(staff_client("malee", "view_banktransaction"), mini_qr(slip), claimed_payment_id=code["payment_id"])
    early = only_entry(shop, code["payment_id"], "staff.slip_checked")
    assert early["summary"] == "Staff checked a slip for this payment that no bank has reported."
    movement = told(shop, bank, slip, code=code)
    check(staff_client("nok", "view_banktransaction"), mini_qr(slip))
    known = entries(shop, code["payment_id"])[-1]
    assert (known["type"], known["actor"]) == ("staff.slip_checked", "staff")
    assert known["summary"] == "Staff checked a slip of this payment's money."
    assert known["details"] == {"receipt_id": movement.pk}


def test_slip_of_other_merchants_money_shows_no_details(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient
) -> None:
    other, ours, slip = other_shop.qr_code(), shop.qr_code(), slip_id()
    told(other_shop, bank, slip, code=other)
    check(staff_client("malee", "view_banktransaction"), mini_qr(slip), claimed_payment_id=ours["payment_id"])
    entry = only_entry(shop, ours["payment_id"], "staff.slip_checked")
    assert (entry["summary"], entry["details"]) == (
        "Staff checked a slip for this payment that belongs to other money.",
        {},
    )
    assert ours["payment_id"] not in str(entries(other_shop, other["payment_id"]))
