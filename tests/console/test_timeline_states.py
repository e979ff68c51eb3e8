"""Every state that a payment, its refunds and its money go through stands in the timeline."""

from collections.abc import Callable
from typing import Any

import pytest

from banks import Word
from tests.conftest import BankCaller, Shop
from tests.console.timeline_cast import entries, only, types
from tests.payments.card_cast import PATH, request
from tests.payments.conftest import acquirer, till
from tests.receipts.cast import Till, decide
from tests.receipts.staff import staff
from tests.receipts.test_slip_check import check, mini_qr, slip_id, told
from tests.refunds.cast import NOBODY, PAYEE, Counter, carry_out

__all__ = ["acquirer", "till"]
TILL_ID = {"X-Request-Id": "till-3.0042"}


def key_of(shop: Shop) -> str:
    return f"key:{shop.merchant.keys.get().public_id}"


@pytest.mark.parametrize(
    ("token", "last"), [("tok_test_visa", "payment.succeeded"), ("tok_test_declined", "payment.failed")]
)
def test_a_card_payment_begins_with_whoever_asked_for_it(till: Shop, token: str, last: str) -> None:
    answer = till.post(PATH, request(token), **TILL_ID).json()
    payment_id = answer.get("payment_id") or answer["error"]["payment_id"]
    told = [(each["type"], each["actor"], each["request_id"]) for each in entries(till, payment_id)]
    assert told == [(each, key_of(till), "till-3.0042") for each in ("payment.pending", last)]


def test_a_payment_is_refunded_by_the_last_refund_and_not_before(
    shop: Shop, bank: BankCaller, clock: Any, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[Word("succeeded", "b-1"), Word("succeeded", "b-2")])
    counter = Counter(shop, bank)
    paid = counter.paid()
    for satang in (50_000, 100_000):
        assert "payment.refunded" not in types(shop, paid)
        clock.shift(60)
        last = counter.refund(paid, amount=satang)
        carry_out()
    told = only(shop, paid, "payment.refunded")
    assert told["details"] == {"refund_id": last["refund_id"]}
    assert told["summary"] == "All of it has gone back: 1,500.00 THB."
    assert types(shop, paid)[-2:] == ["refund.completed", "payment.refunded"]


def test_what_the_bank_takes_back_refunds_the_payment_by_its_word(shop: Shop, bank: BankCaller) -> None:
    at_till = Till(shop, bank)
    credit = at_till.sold()
    at_till.takes_back(credit)
    assert only(shop, str(credit.payment_id), "payment.refunded")["actor"] == "bank:sandbox"


def test_a_refund_that_waited_for_an_account_says_when_it_had_one(
    shop: Shop, bank: BankCaller, clock: Any
) -> None:
    counter = Counter(shop, bank)
    paid = counter.paid(payer=NOBODY)
    refund = counter.refund(paid)
    assert types(shop, paid)[-1] == "refund.created"
    clock.shift(60)
    counter.act(refund, "destination", PAYEE)
    assert types(shop, paid)[-1] == "refund.addressed"


def test_a_refund_that_knew_its_account_waited_for_none(shop: Shop, bank: BankCaller) -> None:
    counter = Counter(shop, bank)
    paid = counter.paid()
    counter.refund(paid)
    assert "refund.addressed" not in types(shop, paid)


def test_a_return_that_the_bank_forestalls_is_canceled(shop: Shop, bank: BankCaller, clock: Any) -> None:
    at_till = Till(shop, bank)
    receipt = at_till.late()
    decide("send_back", receipt)
    clock.shift(60)
    at_till.takes_back(receipt)
    payment_id = str(receipt.payment_id)
    assert types(shop, payment_id)[-2:] == ["bank.notice", "return.canceled"]
    assert only(shop, payment_id, "return.canceled")["actor"] == "bank:sandbox"


def test_a_slip_that_was_shown_is_told_with_whom_it_was_shown_to(shop: Shop, bank: BankCaller) -> None:
    code, slip = shop.qr_code(), slip_id()
    check(staff("malee", "view_receipt"), mini_qr(slip), shown_for=code["payment_id"])
    early = only(shop, code["payment_id"], "staff.slip_checked")
    assert early["summary"] == "A slip was shown to staff for it, and no bank had told of its money."
    receipt = told(shop, bank, slip, code=code)
    check(staff("nok", "view_receipt"), mini_qr(slip))
    known = entries(shop, code["payment_id"])[-1]
    assert (known["type"], known["actor"]) == ("staff.slip_checked", "staff")
    assert known["summary"] == "A slip of its money was shown to staff."
    assert known["details"] == {"receipt_id": receipt.pk}


def test_a_slip_of_anothers_money_tells_the_merchant_nothing_of_it(
    shop: Shop, rival: Shop, bank: BankCaller
) -> None:
    theirs, ours, slip = rival.qr_code(), shop.qr_code(), slip_id()
    told(rival, bank, slip, code=theirs)
    check(staff("malee", "view_receipt"), mini_qr(slip), shown_for=ours["payment_id"])
    entry = only(shop, ours["payment_id"], "staff.slip_checked")
    assert (entry["summary"], entry["details"]) == ("A slip of other money was shown to staff for it.", {})
    assert ours["payment_id"] not in str(entries(rival, theirs["payment_id"]))
