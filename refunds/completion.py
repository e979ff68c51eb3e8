"""How refunds end, by the bank's word: ledger, counters, history and event in the commit of the word."""

import logging
from datetime import datetime
from typing import Any

from django.db.models import F

from approvals import services as approvals
from banks import TransferResult
from core import request_context
from ledger import services as ledger
from ledger.models import JournalType
from payments import services as payments
from payments.models import Payment
from refunds.models import Refund, RefundReason, RefundReversal, RefundStatus
from refunds.records import publish, store
from transactions import services as transactions
from transactions.models import TransactionStatus
from transfers import services as transfers
from transfers.services import TransferHandler

log = logging.getLogger("refunds")
REVERSAL_NOTE = "Taken back by the bank."


class RefundTransferHandler:
    """What `transfers` tells of its orders that are refunds (see `transfers.services.TransferHandler`)."""

    def lock(self, order_id: str) -> None:
        lock(order_id)

    def is_held(self, order_id: str, *, now: datetime) -> bool:
        """Never: it is the payer's money, set aside while the balance covered it."""
        return False

    def on_submitted(self, order_id: str, *, now: datetime) -> None:
        """To the merchant it was processing already, from the moment that it had a destination."""

    def on_completed(self, order_id: str, result: TransferResult, *, now: datetime) -> None:
        payment, refund = lock(order_id)
        approvals.cancel(order_id, now=now)  # of a request to end it as never arrived
        if result.status == "succeeded":
            _complete(refund, payment, now)
        elif result.status == "failed":
            fail(refund, payment, result.failure_code, now)
        else:
            _hold_returned(refund, now)


TRANSFER_HANDLER: TransferHandler = RefundTransferHandler()


def ledger_fields(refund: Refund, now: datetime) -> dict[str, Any]:
    """What each posting of a refund says."""
    return {"merchant_id": refund.merchant_id, "subject_id": refund.id, "amount": refund.amount, "now": now}


def lock(refund_id: str) -> tuple[Payment, Refund]:
    """Both under their locks."""
    payment_id = Refund.objects.values_list("payment_id", flat=True).get(pk=refund_id)
    return Payment.objects.locked(payment_id), Refund.objects.locked(refund_id)


def fail(refund: Refund, payment: Payment, failure_code: str, now: datetime) -> None:
    """It did not go. The caller holds both locks."""
    refund.transition(RefundStatus.FAILED, failure_code=failure_code, updated_at=now)
    publish("refund.failed", refund, now)
    release(refund, payment, now)


def release(refund: Refund, payment: Payment, now: datetime) -> None:
    """It will never go: the money is the merchant's again. The caller holds both locks."""
    payments.release_refund(payment, refund.amount)
    transactions.complete_refund(refund_id=refund.id, status=TransactionStatus.FAILED)
    record_reversal_refund(payment, now)
    ledger.release(type=JournalType.REFUND_RELEASED, **ledger_fields(refund, now))


def _complete(refund: Refund, payment: Payment, now: datetime) -> None:
    refund.transition(RefundStatus.COMPLETED, completed_at=now, updated_at=now)
    payments.complete_refund(payment, refund.amount, now=now)
    transactions.complete_refund(refund_id=refund.id, status=TransactionStatus.SUCCEEDED)
    publish("refund.completed", refund, now)
    ledger.pay_out(type=JournalType.REFUND_PAID, to=refund.route, **ledger_fields(refund, now))


def _hold_returned(refund: Refund, now: datetime) -> None:
    """It went back and then came back to us: the refund stays completed, its money waits for staff."""
    refund.set_fields(returned_at=now)
    ledger.hold(subject_id=refund.id, amount=refund.amount, source=refund.route, now=now)
    log.warning("the money of refund %s came back and waits for staff", refund.id)


def record_reversal_refund(payment: Payment, now: datetime) -> None:
    """As much as no other refund has sent back goes by the refund path, completed at birth.

    The caller holds the payment's lock. Called again when a refund under way does not go: nobody may ask
    again for what the bank has taken meanwhile.
    """
    reversal = RefundReversal.objects.filter(payment=payment, refunded_amount__lt=F("amount")).first()
    part = (
        0 if reversal is None else min(reversal.amount - reversal.refunded_amount, payment.refundable_amount)
    )
    if reversal is None or part == 0:
        return
    payments.reserve_refund(payment, part, now=now)
    by_bank = {
        "reason": RefundReason.OTHER,
        "note": REVERSAL_NOTE,
        "reversal": reversal,
        "route": reversal.route,
    }
    refund = store(payment, part, now, status=RefundStatus.COMPLETED, completed_at=now, **by_bank)
    payments.complete_refund(payment, part, now=now)
    transactions.complete_refund(refund_id=refund.id, status=TransactionStatus.SUCCEEDED)
    reversal.refunded_amount += part
    reversal.save(update_fields=["refunded_amount"])
    publish("refund.completed", refund, now)


def cancel(refund: Refund, payment: Payment, *, now: datetime) -> None:
    """Pending becomes canceled. The caller holds both locks. Raises transfers.AlreadySubmitted."""
    if refund.route:
        transfers.cancel(refund.id, now=now)
        approvals.cancel(refund.id, now=now)
    cause = request_context.current()
    refund.transition(
        RefundStatus.CANCELED,
        awaiting_approval=False,
        updated_at=now,
        cancel_actor=cause.actor,
        cancel_request_id=cause.request_id,
    )
    release(refund, payment, now)
