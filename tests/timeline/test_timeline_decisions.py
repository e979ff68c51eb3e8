"""Decisions about money that did not fit in the timeline, and the results of returns."""

from collections.abc import Callable
from typing import Any

import pytest

from banks import TransferResult
from core import clock as our_clock, request_context
from merchants.models import Merchant
from reconciliation.matching.order_completion import HANDLERS
from reconciliation.models import BankTransaction
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import decide, staff_client
from tests.reconciliation.slips.test_slip_check import check, mini_qr, report, slip_id
from tests.timeline.builders import CLERK, WHY, entries, only_entry, timeline_page, types
from transfers import services as transfers

pytestmark = pytest.mark.slow

Serving = Callable[..., Any]
BY = {"actor": CLERK, "note": WHY}


def waiting(match_result: str) -> str:
    return str(BankTransaction.objects.get(match_result=match_result).pk)


@pytest.mark.parametrize(
    ("result", "after"),
    [
        (TransferResult("unknown"), []),
        (TransferResult("succeeded", "b-1"), ["return.completed"]),
        (TransferResult("failed", failure_code="invalid_account"), ["return.failed"]),
        (TransferResult("returned", "b-1"), ["return.completed", "return.returned"]),
    ],
)
def test_timeline_follows_return_to_final_status(
    shop: Shop, paid_twice: str, clock: Any, served_by: Serving, result: TransferResult, after: list[str]
) -> None:
    served_by(sends=[result])
    decide("send_back", waiting("duplicate"), **BY)
    clock.shift(1)
    transfers.run_due("return", HANDLERS["rtn"], now=our_clock.now)
    assert types(shop, paid_twice)[-2 - len(after) :] == ["staff.sent_back", "return.submitted", *after]
    end = entries(shop, paid_twice)[-1]
    assert end["details"].get("failure_code") == (result.failure_code or None)
    is_failed = end["summary"].endswith(" could not be sent back: the account does not exist.")
    assert is_failed is (result.status == "failed")


def test_timeline_shows_manual_return(shop: Shop, paid_twice: str) -> None:
    bank_transaction_id = waiting("duplicate")
    decide("record_manual_return", bank_transaction_id, bank_reference="counter 7", **BY)
    assert types(shop, paid_twice)[-2:] == ["staff.sent_back_by_hand", "return.completed"]
    notification = entries(shop, paid_twice)[-3]
    assert (notification["type"], notification["details"]["resolution"]) == ("bank.notification", "sent_back")


def test_accepted_money_has_staff_as_actor(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, satang=100)
    request_context.begin(request_id="req_desk")
    decide("accept", waiting("amount_mismatch"), **BY)
    *_, action, paid = entries(shop, code["payment_id"])
    assert (action["type"], paid["type"]) == ("staff.accepted", "payment.succeeded")
    assert action["actor"] == paid["actor"] == "staff"
    assert action["request_id"] == paid["request_id"] == "req_desk"
    assert paid["details"]["amount"] == 100
    assert timeline_page(shop, code["payment_id"])["sources"] == ["callback"]


def test_timeline_of_a_reversal_shows_the_refund_without_request(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    notification = bank.notification(code)
    bank.post(notification)
    bank.post(notification | {"type": "reversal"})
    payment_id = code["payment_id"]
    assert types(shop, payment_id)[-3:] == ["bank.notification", "refund.completed", "payment.refunded"]
    assert only_entry(shop, payment_id, "refund.completed")["actor"] == "bank:sandbox"


def test_late_money_policy_is_actor_of_acceptance(shop: Shop, bank: SandboxBankClient, clock: Any) -> None:
    Merchant.objects.update(late_money="accept")
    code = shop.qr_code(expiry_minutes=1)
    clock.shift(61)
    bank.notify(code)
    assert types(shop, code["payment_id"])[1:] == [
        "payment.expired",
        "bank.notification",
        "policy.accepted",
        "payment.succeeded",
    ]
    assert only_entry(shop, code["payment_id"], "policy.accepted")["actor"] == "policy:late_money"


def test_slip_check_entry_has_actor(shop: Shop, bank: SandboxBankClient) -> None:
    code, slip = shop.qr_code(), slip_id()
    check(
        staff_client("malee", "view_banktransaction", "check_slip"),
        mini_qr(slip),
        claimed_payment_id=code["payment_id"],
    )
    early = only_entry(shop, code["payment_id"], "staff.slip_checked")
    assert early["summary"] == "A slip for this payment was checked that no bank has reported."
    bank_transaction = report(shop, bank, slip, code=code)
    check(staff_client("nok", "view_banktransaction", "check_slip"), mini_qr(slip))
    known = entries(shop, code["payment_id"])[-1]
    assert (known["type"], known["actor"]) == ("staff.slip_checked", "staff")
    assert known["summary"] == "A slip of this payment's money was checked."
    assert known["details"] == {"bank_transaction_id": bank_transaction.pk}


def test_slip_of_other_merchants_money_shows_no_details(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient
) -> None:
    other, ours, slip = other_shop.qr_code(), shop.qr_code(), slip_id()
    report(other_shop, bank, slip, code=other)
    check(
        staff_client("malee", "view_banktransaction", "check_slip"),
        mini_qr(slip),
        claimed_payment_id=ours["payment_id"],
    )
    entry = only_entry(shop, ours["payment_id"], "staff.slip_checked")
    assert (entry["summary"], entry["details"]) == (
        "A slip for this payment was checked that belongs to other money.",
        {},
    )
    assert ours["payment_id"] not in str(entries(other_shop, other["payment_id"]))
