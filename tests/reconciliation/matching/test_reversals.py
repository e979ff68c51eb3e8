"""Reversals: a bank takes money back. The ledger follows, in every state of the money."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from approvals.models import Approval
from audit_trail.acts import ActRefused
from banks import ReportedTransfer, TransferResult
from core import clock
from ledger import services as ledger
from payments.models import Payment
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.matching import order_completion
from reconciliation.models import BankTransaction
from refunds.models import Refund
from tests.reconciliation.builders import (
    Seller,
    decide,
    event_types_of,
    events_of,
    latest_return,
    postings_of,
    reversal_of,
    run_returns,
    state_of,
    suspense,
)
from tests.refunds.builders import PAYEE, send_due_refunds
from tests.transfers.builders import Bank
from tests.withdrawals.builders import PATH, send_due_withdrawals, withdrawal_request, withdrawn
from transfers import services as transfers
from transfers.models import Transfer, TransferEvent

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = (
    TransferResult("succeeded", "b-1"),
    TransferResult("failed", "b-1"),
    TransferResult("processing", "b-1"),
)
REVERSED, WAITS, TAKEN = ("reversed", ""), ("unmatched", ""), ("unmatched", "taken_back")


def test_bank_reversal_of_a_payment_is_shown_as_refund(seller: Seller) -> None:
    credit = seller.sale()
    reversal = seller.reverse(credit)
    assert (state_of(reversal), state_of(credit)) == (REVERSED, ("applied", ""))
    assert (reversal.payment_id, reversal.merchant_id) == (credit.payment_id, seller.shop.merchant.id)
    payment = seller.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_refunded"]) == ("refunded", 150_000)
    assert (seller.history(), seller.history("payment")) == (
        [("succeeded", -150_000)],
        [("refunded", 150_000)],
    )
    assert seller.funds() == {"available": 0, "reserved": 0}
    assert postings_of(reversal.id) == [("reversal", 150_000)]


def test_merchant_gets_one_refund_event_for_a_bank_reversal(seller: Seller) -> None:
    credit = seller.sale()
    reversal = seller.reverse(credit)
    (shown,) = seller.shop.get(f"/v1/refunds?payment_id={credit.payment_id}").json()["refunds"]
    assert (shown["status"], shown["amount"], shown["reason"], shown["note"]) == (
        "completed",
        150_000,
        "other",
        "Taken back by the bank.",
    )
    assert shown["completed_at"] == shown["created_at"] is not None
    assert events_of(shown["refund_id"]) == [("refund.completed", shown)]
    assert Refund.objects.get().reversal_id == reversal.id
    assert sorted(event_types_of(str(credit.payment_id))) == ["payment.pending", "payment.succeeded"]


def test_repeated_reversal_changes_nothing(seller: Seller) -> None:
    credit = seller.sale()
    notification = reversal_of(credit)
    for _ in range(3):
        assert seller.bank.post(notification).json() == {"status": "received"}
    assert (seller.funds(), Refund.objects.count()) == ({"available": 0, "reserved": 0}, 1)


def test_reversal_above_the_balance_is_debt_that_later_credits_repay(
    seller: Seller, served_by: Serving
) -> None:
    served_by(sends=[DONE])
    credit = seller.sale()
    withdrawn(seller.shop, amount=100_000)
    send_due_withdrawals()
    seller.reverse(credit)
    assert seller.funds() == {"available": 0, "reserved": 0, "owed": 100_000}
    seller.sale(30_000)
    assert seller.funds() == {"available": 0, "reserved": 0, "owed": 70_000}
    ledger.roll_up_due(now=clock.now())
    seller.sale(90_000)
    assert seller.funds() == {"available": 20_000, "reserved": 0}
    ledger.roll_up_due(now=clock.now())
    assert seller.funds() == {"available": 20_000, "reserved": 0}


def test_debt_blocks_withdrawals(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    credit = seller.sale()
    withdrawn(seller.shop, amount=100_000)
    send_due_withdrawals()
    seller.reverse(credit)
    seller.sale(110_000)
    answer = seller.shop.post(PATH, withdrawal_request(amount=10_001))
    assert (answer.status_code, answer.json()["error"]["code"]) == (402, "insufficient_funds")


def test_remaining_amount_after_a_partial_reversal_can_be_refunded(
    seller: Seller, served_by: Serving
) -> None:
    served_by(sends=[DONE])
    credit = seller.sale()
    assert state_of(seller.reverse(credit, 50_000)) == REVERSED
    payment = seller.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_refunded"], seller.balance()) == (
        "succeeded",
        50_000,
        (100_000, 0),
    )
    refused = seller.ask(str(credit.payment_id), amount=100_001)
    assert refused.json()["error"]["code"] == "refund_amount_exceeded"
    seller.refund(str(credit.payment_id))
    send_due_refunds()
    assert seller.shop.payment(str(credit.payment_id))["status"] == "refunded"
    assert seller.funds() == {"available": 0, "reserved": 0}


def test_reversal_counts_earlier_refunds_only_once(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    credit = seller.sale()
    seller.refund(str(credit.payment_id), amount=60_000)
    send_due_refunds()
    seller.reverse(credit)
    payment = seller.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_refunded"]) == ("refunded", 150_000)
    assert seller.history() == [("succeeded", -90_000), ("succeeded", -60_000)]
    assert seller.funds() == {"available": 0, "reserved": 0, "owed": 60_000}


def test_reversal_of_a_refunded_payment_is_debt(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    credit = seller.sale()
    seller.refund(str(credit.payment_id))
    send_due_refunds()
    assert state_of(seller.reverse(credit)) == REVERSED
    assert (Refund.objects.count(), seller.funds()) == (1, {"available": 0, "reserved": 0, "owed": 150_000})


@pytest.mark.parametrize(
    ("ends", "status", "refunded", "held"),
    [
        (DONE, "refunded", 150_000, {"available": 0, "reserved": 0, "owed": 40_000}),
        (REFUSED, "refunded", 150_000, {"available": 0, "reserved": 0}),
    ],
)
def test_refund_in_progress_completes_after_a_reversal(
    seller: Seller, served_by: Serving, ends: TransferResult, status: str, refunded: int, held: Any
) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = seller.sale()
    seller.refund(str(credit.payment_id), amount=40_000)
    send_due_refunds()
    seller.reverse(credit)
    assert seller.funds() == {"available": 0, "reserved": 40_000, "owed": 40_000}
    send_due_refunds()
    payment = seller.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_refunded"], seller.funds()) == (status, refunded, held)


def test_reversed_money_cannot_be_refunded_again(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[REFUSED])
    credit = seller.sale()
    asked = seller.refund(str(credit.payment_id))["refund_id"]
    send_due_refunds()
    reversal = seller.reverse(credit)
    assert Refund.objects.get().id == asked
    seller.sale()
    send_due_refunds()
    (by_bank,) = Refund.objects.exclude(pk=asked)
    assert (by_bank.status, by_bank.amount, by_bank.reversal_id) == ("completed", 150_000, reversal.id)
    assert event_types_of(by_bank.id) == ["refund.completed"]
    assert seller.shop.payment(str(credit.payment_id))["status"] == "refunded"
    assert seller.funds() == {"available": 150_000, "reserved": 0}
    again = seller.shop.post("/v1/refunds", {"payment_id": credit.payment_id, "amount": 1})
    assert again.json()["error"]["code"] == "payment_not_refundable"


def test_unsubmitted_refunds_are_canceled_by_a_reversal(seller: Seller) -> None:
    credit = seller.sale()
    asked = [
        seller.refund(str(credit.payment_id), amount=satang)["refund_id"] for satang in (100_000, 10_000)
    ]
    reversal = seller.reverse(credit)
    assert set(Refund.objects.filter(pk__in=asked).values_list("status", "cancel_actor")) == {
        ("canceled", "bank:sandbox")
    }
    shown = Refund.objects.filter(reversal_id=reversal.id).values_list("amount", flat=True)
    assert list(shown) == [150_000]
    assert seller.shop.payment(str(credit.payment_id))["status"] == "refunded"
    assert seller.funds() == {"available": 0, "reserved": 0}


def test_reversed_payment_keeps_refund_without_destination_closed(seller: Seller) -> None:
    code = seller.shop.qr_code()
    assert seller.bank.notify(code, payer_bank_code="999").status_code == 200  # of no bank
    credit, waiting = seller.bank_transaction(code["payment_id"]), seller.refund(code["payment_id"])
    assert waiting["pending_reason"] == "awaiting_destination"
    seller.reverse(credit)
    answer = seller.act(waiting, "destination", PAYEE)
    assert answer.json()["error"]["code"] == "refund_not_addressable"
    assert seller.funds() == {"available": 0, "reserved": 0}


def test_partial_reversal_keeps_refunds_within_remaining_amount(seller: Seller) -> None:
    credit = seller.sale()
    kept, beyond = (seller.refund(str(credit.payment_id), amount=60_000)["refund_id"] for _ in range(2))
    seller.reverse(credit, 50_000)
    assert dict(Refund.objects.filter(pk__in=[kept, beyond]).values_list("pk", "status")) == {
        kept: "pending",
        beyond: "canceled",
    }
    payment = seller.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_refunded"]) == ("succeeded", 50_000)


@pytest.mark.parametrize("change", [{"satang": 150_001}, {"transaction_id": "ANOTHERTRANSACTION00"}])
def test_reversal_of_an_unknown_credit_posts_nothing(seller: Seller, change: Any) -> None:
    credit = seller.sale()
    reversal = seller.reverse(credit, **change)
    assert (state_of(reversal), reversal.payment_id) == (WAITS, None)
    assert seller.funds() == {"available": 150_000, "reserved": 0}
    assert Payment.objects.get().status == "succeeded"


def test_credit_is_reversed_once_under_any_bank_id(seller: Seller) -> None:
    credit = seller.sale()
    seller.reverse(credit)
    assert state_of(seller.reverse(credit, transaction_id="ANOTHERTRANSACTION00")) == WAITS
    assert seller.funds() == {"available": 0, "reserved": 0}


def test_reversal_reported_before_the_credit_is_applied_with_the_credit(seller: Seller) -> None:
    code = seller.shop.qr_code()
    notification = seller.bank.notification(code)
    assert seller.bank.post(notification | {"type": "reversal"}).status_code == 200
    reversal = BankTransaction.objects.get()
    assert state_of(reversal) == WAITS
    seller.bank.post(notification)
    assert (state_of(reversal), seller.shop.payment(code["payment_id"])["status"]) == (REVERSED, "refunded")
    assert seller.funds() == {"available": 0, "reserved": 0}
    assert sorted(event_types_of(code["payment_id"])) == ["payment.pending", "payment.succeeded"]


def test_reversal_of_held_money_debits_suspense(seller: Seller) -> None:
    for credit in (seller.unmatched(), seller.mismatch(), seller.late(), seller.duplicate()):
        before = suspense()
        reversal = seller.reverse(credit)
        assert (state_of(reversal), credit.id, state_of(credit)[1]) == (REVERSED, credit.id, "taken_back")
        assert suspense() == before - credit.amount
        with pytest.raises(AlreadyResolved, match="The bank has reversed this money"):
            decide("send_back", credit)
    assert (suspense(), Refund.objects.count()) == (0, 0)


def test_partial_reversal_of_held_money_is_applied_after_the_decision(seller: Seller) -> None:
    credit = seller.mismatch(149_900)
    reversal = seller.reverse(credit, 100_000)
    assert (state_of(reversal), suspense()) == (WAITS, 149_900)
    decide("accept", credit)
    assert (state_of(reversal), suspense()) == (REVERSED, 0)
    payment = seller.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_received"], payment["amount_refunded"]) == (
        "succeeded",
        149_900,
        100_000,
    )
    assert seller.funds() == {"available": 49_900, "reserved": 0}


def test_reversal_of_attached_money_debits_the_credited_merchant(seller: Seller) -> None:
    credit, payment_id = seller.unmatched(), seller.shop.qr_code()["payment_id"]
    decide("attach", credit, payment_id=payment_id)
    reversal = seller.reverse(credit)
    assert (state_of(reversal), reversal.payment_id) == (REVERSED, payment_id)
    assert seller.shop.payment(payment_id)["status"] == "refunded"
    assert seller.funds() == {"available": 0, "reserved": 0}


# --- money on its way back to the payer --------------------------------------------------------------------


def test_reversal_cancels_an_unsubmitted_return(seller: Seller, served_by: Serving) -> None:
    bank, credit = served_by(), seller.unmatched()
    decide("send_back", credit)
    assert state_of(seller.reverse(credit)) == REVERSED
    run_returns(2)
    assert (state_of(credit), latest_return(credit).status, bank.sent, suspense()) == (
        TAKEN,
        "canceled",
        [],
        0,
    )


def test_reversal_of_money_being_returned_is_an_exception(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
    credit = seller.unmatched()
    decide("send_back", credit)
    run_returns()
    reversal = seller.reverse(credit)
    assert (state_of(reversal), state_of(credit)) == (WAITS, ("unmatched", "sending_back"))
    assert suspense() == 150_000


def waiting_reversal(
    seller: Seller, served_by: Serving, ends: TransferResult
) -> tuple[BankTransaction, BankTransaction]:
    """A credit that its bank was sending back as it took it back; how the sending ended."""
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = seller.unmatched()
    decide("send_back", credit)
    run_returns()
    reversal = seller.reverse(credit)
    run_returns()
    return credit, reversal


def test_reversal_is_applied_after_the_return_fails(seller: Seller, served_by: Serving) -> None:
    credit, reversal = waiting_reversal(seller, served_by, REFUSED)
    assert (state_of(reversal), state_of(credit), latest_return(credit).status) == (REVERSED, TAKEN, "failed")
    assert (suspense(), postings_of(reversal.id)) == (0, [("reversal", 150_000)])


def test_reversal_stays_an_exception_after_the_return_completes(seller: Seller, served_by: Serving) -> None:
    credit, reversal = waiting_reversal(seller, served_by, DONE)
    assert (state_of(reversal), state_of(credit)) == (WAITS, ("unmatched", "sent_back"))
    assert (suspense(), postings_of(reversal.id)) == (0, [])
    seller.bank.post(reversal_of(credit, paid_at=reversal_of(credit)["paid_at"]))
    assert state_of(reversal) == WAITS


def test_reversal_is_applied_when_the_returned_money_bounces(seller: Seller, served_by: Serving) -> None:
    credit, reversal = waiting_reversal(seller, served_by, DONE)
    notification = ReportedTransfer(latest_return(credit).id, "returned")
    transfers.apply_notification(notification, order_completion.HANDLERS["rtn"], now=clock.now())
    assert (state_of(reversal), state_of(credit), suspense()) == (REVERSED, TAKEN, 0)


def test_dismissed_reversal_does_not_change_a_return(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[REFUSED])
    credit = seller.unmatched()
    decide("send_back", credit)
    run_returns()
    reversal = seller.reverse(credit)
    decide("dismiss", reversal)
    run_returns()
    assert (state_of(reversal), state_of(credit), suspense()) == (("unmatched", "dismissed"), WAITS, 150_000)


def test_dismissed_reversal_is_applied_when_the_credit_arrives(seller: Seller) -> None:
    code = seller.shop.qr_code()
    notification = seller.bank.notification(code)
    seller.bank.post(notification | {"type": "reversal"})
    reversal = BankTransaction.objects.get()
    decide("dismiss", reversal)
    seller.bank.post(notification)
    assert state_of(reversal) == ("reversed", "")
    assert seller.funds() == {"available": 0, "reserved": 0}
    assert seller.shop.payment(code["payment_id"])["status"] == "refunded"


def test_partially_reversed_money_cannot_be_returned_in_full(seller: Seller, served_by: Serving) -> None:
    served_by()
    credit = seller.unmatched()
    seller.reverse(credit, credit.amount - 1)
    for action, values in (("send_back", {}), ("record_manual_return", {"bank_reference": "B-1"})):
        with pytest.raises(ActRefused, match="is reversing money of this transaction"):
            decide(action, credit, **values)
    assert state_of(credit) == WAITS


def test_credits_cannot_be_dismissed_and_reversals_cannot_be_returned(seller: Seller) -> None:
    credit = seller.sale()
    reversal = seller.reverse(credit, transaction_id="ANOTHERTRANSACTION00")
    with pytest.raises(ActRefused, match="Money cannot be dismissed"):
        decide("dismiss", seller.unmatched())
    for action, values in [("send_back", {}), ("record_manual_return", {"bank_reference": "x"})]:
        with pytest.raises(ActRefused, match="no money"):
            decide(action, reversal, **values)
    with pytest.raises(ActRefused, match="cannot be accepted"):
        decide("accept", reversal)
    with pytest.raises(ActRefused, match="Only a credit can be attached"):
        decide("attach", reversal, payment_id=seller.shop.qr_code()["payment_id"])


def statements_of_a_reversal(seller: Seller, count: int) -> int:
    """Reverse a payment with `count` pending refunds, half of them held for approval."""
    credit = seller.sale()
    for number in range(count):
        seller.refund(str(credit.payment_id), amount=1, **{"destination": PAYEE} if number % 2 else {})
    with CaptureQueriesContext(connection) as sent:
        assert state_of(seller.reverse(credit)) == REVERSED
    canceled = Refund.objects.filter(payment=credit.payment_id, status="canceled")
    assert (canceled.count(), seller.funds()) == (count, {"available": 0, "reserved": 0})
    orders = Transfer.objects.filter(pk__in=canceled.values("pk"), state="canceled")
    assert (orders.count(), Approval.objects.waiting().exists()) == (count, False)
    assert TransferEvent.objects.filter(transfer__in=orders, type="canceled").count() == count
    shown = Refund.objects.get(payment=credit.payment_id, reversal__isnull=False)
    assert (shown.status, shown.amount) == ("completed", 150_000)
    return len(sent)


def test_reversal_cancels_any_number_of_refunds_with_the_same_statements(
    seller: Seller, settings: Settings
) -> None:
    settings.APPROVAL_DAILY_LIMIT = 1
    assert statements_of_a_reversal(seller, 2) == statements_of_a_reversal(seller, 20)


def test_reversal_cancels_no_more_refunds_than_are_in_its_way(seller: Seller) -> None:
    credit = seller.sale()
    refunds = [seller.refund(str(credit.payment_id), amount=40_000) for _ in range(3)]
    seller.reverse(credit, 100_000)  # 30,000 are free, so the two newest refunds make room
    assert [seller.read(each)["status"] for each in refunds] == ["pending", "canceled", "canceled"]
    assert seller.history() == [
        ("succeeded", -100_000),
        ("failed", -40_000),
        ("failed", -40_000),
        ("pending", -40_000),
    ]
    assert seller.funds() == {"available": 10_000, "reserved": 40_000}
