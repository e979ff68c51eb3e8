"""Results of refunds: ledger, payment, history and events agree."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from banks import ReportedTransfer, TransferResult
from core import clock
from core.database.state_machines import IllegalTransition
from ledger.models import Entry, Journal
from payments.models import Payment
from reconciliation.matching.order_completion import HANDLERS
from refunds.models import Refund, RefundStatus
from tests.refunds.builders import NOBODY, PAYEE, RefundShop, error_of, send_due_refunds
from tests.transfers.builders import Bank
from transfers import services as transfers
from transfers.models import Transfer, TransferState
from webhooks.models import Event

pytestmark = pytest.mark.slow

Serving = Callable[..., Bank]
DONE, REFUSED = TransferResult("succeeded", "b-1"), TransferResult("failed", "b-1", "invalid_account")


def events_of(refund: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return type and data of the refund's events."""
    events = Event.objects.filter(subject_id=refund["refund_id"]).order_by("created_at")
    return [(event.type, orjson.loads(event.body)["data"]) for event in events]


def journal_types_of(refund: dict[str, Any]) -> list[str]:
    return list(
        Journal.objects.filter(subject_id=refund["refund_id"]).order_by("id").values_list("type", flat=True)
    )


def test_full_refund_completes_and_payment_is_refunded(refund_shop: RefundShop, served_by: Serving) -> None:
    bank = served_by()
    payment_id = refund_shop.paid()
    refund = refund_shop.refund(payment_id)
    send_due_refunds(2)
    ended = refund_shop.read(refund)
    assert (ended["status"], ended["pending_reason"], ended["failure_code"]) == ("completed", None, None)
    assert ended["completed_at"] == ended["updated_at"] > refund["created_at"]
    assert events_of(refund) == [("refund.completed", ended)]
    payment = refund_shop.shop.payment(payment_id)
    assert (payment["status"], payment["amount_refunded"]) == ("refunded", 150_000)
    assert refund_shop.balance() == (0, 0)
    assert (refund_shop.history(), refund_shop.history("payment")) == (
        [("succeeded", -150_000)],
        [("refunded", 150_000)],
    )
    assert journal_types_of(refund) == ["refund_reserved", "refund_paid"]
    assert (bank.sent, len(bank.inquired)) == ([refund["refund_id"]], 1)


def test_last_partial_refund_makes_the_payment_refunded(refund_shop: RefundShop, served_by: Serving) -> None:
    served_by(sends=[DONE])
    payment_id = refund_shop.paid()
    for number, amount in enumerate([50_000, 99_999, 1]):
        refund_shop.refund(payment_id, amount=amount)
        assert refund_shop.shop.payment(payment_id)["status"] == "succeeded"
        send_due_refunds()
        assert len(refund_shop.history()) == number + 1
    payment = refund_shop.shop.payment(payment_id)
    assert (payment["status"], payment["amount_refunded"]) == ("refunded", 150_000)
    assert refund_shop.balance() == (0, 0)


def test_payment_is_not_refunded_while_a_partial_refund_is_pending(
    refund_shop: RefundShop, served_by: Serving
) -> None:
    served_by(sends=[DONE, TransferResult("processing")], inquiries=[TransferResult("processing")])
    payment_id = refund_shop.paid()
    refund_shop.refund(payment_id, amount=50_000)
    send_due_refunds()
    refund_shop.refund(payment_id)
    send_due_refunds(2)
    payment = refund_shop.shop.payment(payment_id)
    assert (payment["status"], payment["amount_refunded"]) == ("succeeded", 50_000)
    assert refund_shop.balance() == (0, 100_000)


def test_failed_refund_releases_the_reserved_money(refund_shop: RefundShop, served_by: Serving) -> None:
    served_by(sends=[REFUSED])
    payment_id = refund_shop.paid()
    refund = refund_shop.refund(payment_id, amount=60_000)
    send_due_refunds()
    ended = refund_shop.read(refund)
    assert (ended["status"], ended["failure_code"], ended["completed_at"]) == (
        "failed",
        "invalid_account",
        None,
    )
    assert events_of(refund) == [("refund.failed", ended)]
    assert refund_shop.balance() == (150_000, 0)
    assert refund_shop.history() == [("failed", -60_000)]
    assert journal_types_of(refund) == ["refund_reserved", "refund_released"]
    payment = refund_shop.shop.payment(payment_id)
    assert (payment["status"], payment["amount_refunded"]) == ("succeeded", 0)
    assert refund_shop.refund(payment_id, destination=PAYEE)["amount"] == 150_000


@pytest.mark.parametrize("is_addressed", [True, False])
def test_refund_that_was_not_submitted_can_be_canceled(
    refund_shop: RefundShop, served_by: Serving, is_addressed: bool
) -> None:
    bank = served_by()
    payment_id = refund_shop.paid(payer=None if is_addressed else NOBODY)
    refund = refund_shop.refund(payment_id)
    answer = refund_shop.act(refund, "cancel")
    assert answer.status_code == 200
    canceled = answer.json()
    assert (canceled["status"], canceled["pending_reason"], canceled["completed_at"]) == (
        "canceled",
        None,
        None,
    )
    assert refund_shop.read(refund) == canceled
    send_due_refunds(2)
    assert (bank.sent, events_of(refund)) == ([], [])
    assert refund_shop.balance() == (150_000, 0)
    assert refund_shop.history() == [("failed", -150_000)]
    assert refund_shop.refund(payment_id)["amount"] == 150_000


@pytest.mark.parametrize(
    ("replies", "rounds"),
    [
        ({"sends": [TransferResult("processing")]}, 1),
        ({"sends": [TransferResult("unknown")], "inquiries": [TransferResult("unknown")]}, 3),
        ({"sends": [DONE]}, 1),
        ({"sends": [REFUSED]}, 1),
    ],
)
def test_submitted_refund_cannot_be_canceled(
    refund_shop: RefundShop, served_by: Serving, replies: dict[str, Any], rounds: int
) -> None:
    served_by(**replies)
    refund = refund_shop.refund(refund_shop.paid())
    send_due_refunds(rounds)
    before = refund_shop.read(refund), refund_shop.balance()
    assert error_of(refund_shop.act(refund, "cancel")) == (400, "refund_not_cancelable", None)
    assert (refund_shop.read(refund), refund_shop.balance()) == before


def test_canceled_refund_cannot_be_canceled_again(refund_shop: RefundShop) -> None:
    refund = refund_shop.refund(refund_shop.paid())
    assert refund_shop.act(refund, "cancel").status_code == 200
    assert error_of(refund_shop.act(refund, "cancel")) == (400, "refund_not_cancelable", None)
    assert refund_shop.balance() == (150_000, 0)


def test_refund_that_did_not_reach_the_bank_can_be_canceled(
    refund_shop: RefundShop, served_by: Serving
) -> None:
    served_by(sends=[TransferResult("not_sent")])
    refund = refund_shop.refund(refund_shop.paid())
    send_due_refunds()
    assert refund_shop.act(refund, "cancel").json()["status"] == "canceled"


def test_refund_with_unknown_answer_is_inquired_and_never_sent_again(
    refund_shop: RefundShop, served_by: Serving
) -> None:
    bank = served_by(
        sends=[TransferResult("unknown")],
        inquiries=[TransferResult("unknown"), TransferResult("not_sent"), DONE],
    )
    refund = refund_shop.refund(refund_shop.paid())
    send_due_refunds(2)
    assert refund_shop.read(refund)["status"] == "pending"
    assert refund_shop.balance() == (0, 150_000)
    send_due_refunds(4)
    assert refund_shop.read(refund)["status"] == "completed"
    assert (bank.sent, len(bank.inquired)) == ([refund["refund_id"]], 3)
    assert journal_types_of(refund) == ["refund_reserved", "refund_paid"]


def test_bank_notification_completes_a_refund_once(refund_shop: RefundShop, served_by: Serving) -> None:
    served_by()
    refund = refund_shop.refund(refund_shop.paid())
    send_due_refunds()
    for _ in range(2):
        transfers.apply_notification(
            ReportedTransfer(refund["refund_id"], "succeeded"), HANDLERS["ref"], now=clock.now()
        )
    assert [kind for kind, _ in events_of(refund)] == ["refund.completed"]
    assert journal_types_of(refund) == ["refund_reserved", "refund_paid"]


@pytest.mark.parametrize("was_known", [True, False])
def test_returned_refund_stays_completed_and_waits_for_staff(
    refund_shop: RefundShop, served_by: Serving, was_known: bool
) -> None:
    """`completed` is final for merchants, so nothing they see changes."""
    served_by(sends=[DONE if was_known else TransferResult("processing")])
    payment_id = refund_shop.paid()
    refund = refund_shop.refund(payment_id)
    send_due_refunds()
    for _ in range(2):
        transfers.apply_notification(
            ReportedTransfer(refund["refund_id"], "returned"), HANDLERS["ref"], now=clock.now()
        )
    assert refund_shop.read(refund)["status"] == "completed"
    assert [kind for kind, _ in events_of(refund)] == ["refund.completed"]
    assert refund_shop.shop.payment(payment_id)["status"] == "refunded"
    assert journal_types_of(refund) == ["refund_reserved", "refund_paid", "held"]
    assert Entry.objects.get(account_id="suspense:sandbox").amount == 150_000
    assert refund_shop.balance() == (0, 0)
    assert Refund.objects.get().returned_at is not None
    assert Transfer.objects.get().state == TransferState.RETURNED


def test_illegal_refund_transitions_are_refused(refund_shop: RefundShop) -> None:
    refund_shop.refund(refund_shop.paid())
    for start in RefundStatus:
        for target in RefundStatus:
            if target not in Refund.TRANSITIONS.get(start, set()):
                with pytest.raises(IllegalTransition):
                    Refund(status=start).transition(target)


def test_completed_refund_changes_updated_at_of_the_payment(
    refund_shop: RefundShop, served_by: Serving
) -> None:
    served_by(sends=[DONE])
    payment_id = refund_shop.paid()
    refund = refund_shop.refund(payment_id, amount=1)
    before = Payment.objects.get(pk=payment_id).updated_at
    send_due_refunds()
    shown = refund_shop.shop.get(f"/v1/payments/{payment_id}").json()
    assert Payment.objects.get(pk=payment_id).updated_at > before
    assert shown["updated_at"] == refund_shop.read(refund)["completed_at"]
