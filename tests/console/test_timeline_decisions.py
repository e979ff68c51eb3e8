"""Money that did not fit, in the timeline of the payment that it named: what was done, what came of it."""

from collections.abc import Callable
from typing import Any

import pytest

from banks import Word
from core import clock as our_clock
from core import origin
from merchants.models import Merchant
from receipts import acts
from receipts.models import Receipt
from receipts.orders import OWNERS
from tests.conftest import BankCaller, Shop
from tests.console.timeline_cast import CLERK, WHY, entries, only, page, types
from transfers import services as transfers

Serving = Callable[..., Any]
BY: dict[str, Any] = {"by": CLERK, "why": WHY}


@pytest.fixture
def twice(shop: Shop, bank: BankCaller, clock: Any) -> str:
    """A payment that was paid twice; a second has passed since."""
    code = shop.qr_code()
    bank.tell(code)
    clock.shift(1)
    bank.tell(code)
    clock.shift(1)
    return str(code["payment_id"])


def waiting(outcome: str) -> str:
    return str(Receipt.objects.get(outcome=outcome).pk)


@pytest.mark.parametrize(
    ("word", "after"),
    [
        (Word("unknown"), []),
        (Word("succeeded", "b-1"), ["return.completed"]),
        (Word("failed", failure_code="account_closed"), ["return.failed"]),
        (Word("returned", "b-1"), ["return.completed", "return.returned"]),
    ],
)
def test_what_is_sent_back_is_followed_to_its_end(
    shop: Shop, twice: str, clock: Any, served_by: Serving, word: Word, after: list[str]
) -> None:
    served_by(sends=[word])
    acts.send_back(waiting("duplicate"), now=our_clock.now(), **BY)
    clock.shift(1)
    transfers.work("return", OWNERS["rtn"], now=our_clock.now)
    assert types(shop, twice)[-2 - len(after) :] == ["staff.sent_back", "return.told", *after]
    assert entries(shop, twice)[-1]["details"].get("failure_code") == (word.failure_code or None)


def test_what_was_sent_back_by_hand_went_back(shop: Shop, twice: str) -> None:
    receipt_id = waiting("duplicate")
    acts.send_back_by_hand(receipt_id, bank_reference="counter 7", now=our_clock.now(), **BY)
    assert types(shop, twice)[-2:] == ["staff.sent_back_by_hand", "return.completed"]
    notice = entries(shop, twice)[-3]
    assert (notice["type"], notice["details"]["resolution"]) == ("bank.notice", "sent_back")


def test_money_that_staff_accept_makes_an_event_of_theirs(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    bank.tell(code, satang=100)
    origin.begin(actor=f"staff:{CLERK}", request_id="req_desk")
    acts.accept(waiting("amount_mismatch"), now=our_clock.now(), **BY)
    *_, act, paid = entries(shop, code["payment_id"])
    assert (act["type"], paid["type"]) == ("staff.accepted", "payment.succeeded")
    assert act["actor"] == paid["actor"] == "staff"
    assert act["request_id"] == paid["request_id"] == "req_desk"
    assert paid["details"]["amount"] == 100
    assert page(shop, code["payment_id"])["witnesses"] == ["callback"]


def test_what_the_bank_takes_back_nobody_asked_for(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    notice = bank.notice(code)
    bank.post(notice)
    bank.post(notice | {"type": "reversal"})
    payment_id = code["payment_id"]
    assert types(shop, payment_id)[-3:] == ["bank.notice", "refund.completed", "payment.refunded"]
    assert only(shop, payment_id, "refund.completed")["actor"] == "bank:sandbox"


def test_late_money_that_the_policy_accepts_is_the_policys_act(
    shop: Shop, bank: BankCaller, clock: Any
) -> None:
    Merchant.objects.update(late_money="accept")
    code = shop.qr_code(expiry_minutes=1)
    clock.shift(61)
    bank.tell(code)
    assert types(shop, code["payment_id"])[1:] == [
        "payment.expired",
        "bank.notice",
        "policy.accepted",
        "payment.succeeded",
    ]
    assert only(shop, code["payment_id"], "policy.accepted")["actor"] == "policy:late_money"
