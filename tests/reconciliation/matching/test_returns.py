"""Returns: one order to the bank; the money stays in suspense until the bank reports success."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from pytest_django import Settings

from audit_trail.acts import ActRefused
from banks import TransferResult
from core import clock
from payments.models import Payment
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.models import Resolution, Return
from refunds.destinations import Destination
from tests.reconciliation.builders import (
    Seller,
    complete_order,
    decide,
    latest_return,
    postings_of,
    run_returns,
    state_of,
    suspense,
)
from tests.transfers.builders import Bank
from transfers import services as transfers
from transfers.models import Transfer
from transfers.schedule import OVERDUE_AFTER

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = (
    TransferResult("succeeded", "b-1"),
    TransferResult("failed", "b-1", "closed"),
    TransferResult("processing"),
)


def test_return_is_sent_to_the_payer_account_reported_by_the_bank(seller: Seller, served_by: Serving) -> None:
    bank, bank_transaction = served_by(), seller.unmatched()
    made = decide("send_back", bank_transaction)
    order = Transfer.objects.get().order
    assert (order.order_id, order.purpose, order.amount) == (made.id, "return", 150_000)
    assert (order.bank_code, order.account, order.account_name) == ("014", "1234567890", "Somchai Jaidee")
    assert "1234567890" not in Transfer.objects.get().account_sealed
    assert Transfer.objects.get().merchant_id == seller.shop.merchant.id
    assert (state_of(bank_transaction), suspense()) == (("unmatched", "sending_back"), 150_000)
    run_returns(2)
    assert (bank.sent, state_of(bank_transaction)) == ([made.id], ("unmatched", "sent_back"))
    made.refresh_from_db()
    assert (made.status, made.bank_reference, made.is_manual) == ("completed", "b-1", False)
    assert (postings_of(made.id), suspense()) == ([("sent_back", 150_000)], 0)
    assert Resolution.objects.get().type == "sent_back"


def test_return_does_not_expire_the_payment(seller: Seller, served_by: Serving) -> None:
    served_by()
    bank_transaction = seller.late()
    with time_machine.travel(clock.now() + timedelta(minutes=2)):
        decide("send_back", bank_transaction)
    assert Payment.objects.get().status == "pending"


def test_return_is_sent_to_the_account_entered_by_staff(seller: Seller, served_by: Serving) -> None:
    served_by()
    decide("send_back", seller.unmatched(), destination=Destination("004", "4051234567", "สมหญิง ใจดี"))
    order = Transfer.objects.get().order
    assert (order.bank_code, order.account, order.account_name) == ("004", "4051234567", "สมหญิง ใจดี")


def test_return_without_a_valid_payer_account_needs_an_entered_account(
    seller: Seller, served_by: Serving
) -> None:
    served_by()
    bank_transaction = seller.unmatched(payer_bank_code="999")
    with pytest.raises(ActRefused, match="enter one"):
        decide("send_back", bank_transaction)
    assert (state_of(bank_transaction), Return.objects.count()) == (("unmatched", ""), 0)
    assert Resolution.objects.count() == 0
    decide("send_back", bank_transaction, destination=Destination("004", "4051234567", "S"))
    assert state_of(bank_transaction)[1] == "sending_back"


def test_bank_without_transfers_needs_a_manual_return(seller: Seller, settings: Settings) -> None:
    bank_transaction = seller.unmatched()
    settings.SANDBOX_BANK_SECRET = ""
    with pytest.raises(ActRefused, match="send it at the bank"):
        decide("send_back", bank_transaction)
    assert (state_of(bank_transaction), Return.objects.count()) == (("unmatched", ""), 0)
    made = decide("record_manual_return", bank_transaction, bank_reference="counter 7, 21 Nov")
    assert (made.status, made.is_manual, made.bank_reference) == ("completed", True, "counter 7, 21 Nov")
    assert (state_of(bank_transaction), suspense()) == (("unmatched", "sent_back"), 0)
    assert not Transfer.objects.exists()


def test_failed_return_can_be_retried_or_resolved_otherwise(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[REFUSED, REFUSED, DONE])
    bank_transaction = seller.late()
    for _ in range(2):
        decide("send_back", bank_transaction)
        run_returns()
        failed = latest_return(bank_transaction)
        assert (state_of(bank_transaction), failed.status, failed.failure_code) == (
            ("late", ""),
            "failed",
            "closed",
        )
        assert suspense() == 150_000
    decide("accept", bank_transaction)
    assert (state_of(bank_transaction)[1], suspense(), seller.balance()) == ("accepted", 0, (150_000, 0))
    assert [resolution.type for resolution in Resolution.objects.order_by("id")] == [
        "sent_back",
        "sent_back",
        "accepted",
    ]


def test_returned_money_that_bounces_is_an_exception_again(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    bank_transaction = seller.unmatched()
    first = decide("send_back", bank_transaction)
    run_returns()
    for _ in range(2):
        assert seller.bank.post(order_notification(first.id, "returned")).status_code == 200
        first.refresh_from_db()
        assert (first.status, state_of(bank_transaction), suspense()) == (
            "completed",
            ("unmatched", ""),
            150_000,
        )
    assert first.returned_at is not None
    second = decide("send_back", bank_transaction)
    run_returns()
    assert (state_of(bank_transaction)[1], suspense()) == ("sent_back", 0)
    assert [postings_of(made.id) for made in (first, second)] == [
        [("sent_back", 150_000), ("held", 150_000)],
        [("sent_back", 150_000)],
    ]


def order_notification(order_id: str, status: str) -> dict[str, Any]:
    return {
        "type": "order", "reference": order_id, "bank_reference": "sbo_1", "amount": "1500.00",
        "currency": "THB", "status": status, "reason": "account_closed" if status != "succeeded" else "",
    }  # fmt: skip


def test_bank_notification_completes_a_return(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
    bank_transaction = seller.unmatched()
    made = decide("send_back", bank_transaction)
    run_returns()
    for _ in range(2):
        assert seller.bank.post(order_notification(made.id, "succeeded")).json() == {"status": "received"}
    assert (state_of(bank_transaction)[1], suspense()) == ("sent_back", 0)
    assert latest_return(bank_transaction).bank_reference == "sbo_1"


def test_returned_notification_before_success_reopens_the_exception(
    seller: Seller, served_by: Serving
) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
    bank_transaction = seller.unmatched()
    made = decide("send_back", bank_transaction)
    run_returns()
    seller.bank.post(order_notification(made.id, "returned"))
    assert (state_of(bank_transaction), suspense()) == (("unmatched", ""), 150_000)
    assert [fact for fact, _ in postings_of(made.id)] == ["sent_back", "held"]


@pytest.mark.parametrize(
    ("result", "resolution_state", "left"),
    [(transfers.ARRIVED, "sent_back", 0), (transfers.NEVER_ARRIVED, "", 150_000)],
)
def test_staff_complete_an_overdue_return(
    seller: Seller, served_by: Serving, result: TransferResult, resolution_state: str, left: int
) -> None:
    served_by(sends=[TransferResult("unknown")], inquiries=[TransferResult("unknown")])
    bank_transaction = seller.unmatched()
    made = decide("send_back", bank_transaction)
    run_returns(2)
    with time_machine.travel(clock.now() + OVERDUE_AFTER + timedelta(minutes=1)):
        complete_order(made.id, result)
        with pytest.raises(transfers.NotOverdue):
            complete_order(made.id, result, actor="staff:somsak")
    assert (state_of(bank_transaction)[1], suspense()) == (resolution_state, left)


def test_money_of_a_pending_return_cannot_be_resolved_otherwise(seller: Seller, served_by: Serving) -> None:
    bank = served_by(sends=[UNDER_WAY], inquiries=[DONE])
    bank_transaction = seller.late()
    decide("send_back", bank_transaction)
    for _ in range(3):
        for action, more in [
            ("accept", {}),
            ("send_back", {}),
            ("record_manual_return", {"bank_reference": "b"}),
        ]:
            with pytest.raises(AlreadyResolved):
                decide(action, bank_transaction, **more)
        run_returns()
    assert (len(bank.sent), suspense()) == (1, 0)
    assert seller.shop.payment(str(bank_transaction.payment_id))["status"] == "pending"
