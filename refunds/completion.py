"""Results of refunds, and reversals by banks: ledger, counters, history and event in one commit."""

import logging
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from django.db.models import F

from approvals import payout_accounts, services as approvals
from approvals.models import Approval
from banks import TransferResult
from core import ids, request_context
from core.database.state_machines import transition_all
from core.failures import REJECTED_BY_STAFF
from ledger import services as ledger
from ledger.journal_types import JournalType
from payments import cards, services as payments
from payments.models import Payment
from refunds import destinations
from refunds.models import Refund, RefundReason, RefundReversal, RefundStatus
from refunds.shapes import refund_object
from transactions import services as transactions
from transactions.models import TransactionStatus
from transfers import for_staff, services as transfers
from transfers.models import Transfer
from webhooks import events

log = logging.getLogger("refunds")


class _Handler:
    """A `transfers.services.TransferHandler` and an `approvals.services.ApprovalHandler`."""

    def lock(self, subject_id: str) -> Refund:
        return lock(subject_id)[1]

    def is_held(self, transfer: Transfer, *, now: datetime) -> bool:
        """Held while its account is not allowed. The money was reserved while the balance covered it."""
        payment, _ = lock(transfer.id)
        return not destinations.may_be_sent(payment, transfer, now=now)

    def on_submitted(self, order_id: str, *, now: datetime) -> None:
        """Publish no event: merchants see `processing` since the refund got a destination."""

    def on_completed(self, order_id: str, result: TransferResult, *, now: datetime) -> None:
        payment, refund = lock(order_id)
        approvals.cancel(order_id, now=now)  # of a request to end it as never arrived
        if result.status == "succeeded":
            refund.transition(RefundStatus.COMPLETED, completed_at=now, updated_at=now)
            payments.complete_refund(payment, refund.amount, now=now)
            transactions.complete_refunds(refund.id, status=TransactionStatus.SUCCEEDED)
            _publish("refund.completed", refund, now)
            ledger.pay_out(type=JournalType.REFUND_PAID, to=refund.route, **ledger_fields(refund, now))
        elif result.status == "failed":
            fail(refund, payment, result.failure_code, now)
        else:  # the refund stays completed, and its money waits for staff
            refund.set_fields(returned_at=now)
            for_staff.report(refund)
            ledger.hold({refund.id: refund.amount}, source=refund.route, now=now)
            log.warning("the money of refund %s was returned and waits for staff", refund.id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        _, refund = lock(approval.subject_id)
        order = Transfer.objects.get(pk=refund.id)
        with approvals.as_not_decidable():
            payout_accounts.check(refund.merchant_id, order.bank_code, order.account, now=now)
        refund.set_fields(awaiting_approval=False, updated_at=now)
        transfers.release(refund.id, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        payment, refund = lock(approval.subject_id)
        transfers.cancel(refund.id, now=now)
        refund.set_fields(awaiting_approval=False)
        fail(refund, payment, REJECTED_BY_STAFF, now)


TRANSFER_HANDLER = APPROVAL_HANDLER = _Handler()


def store(
    payment: Payment, amount: int, now: datetime, *, refund_id: str | None = None, **fields: Any
) -> Refund:
    """Store a refund of `amount` satang and its row of the history. The caller has reserved the money.

    refund_id: of a refund that a restore lost.
    """
    refund_id = refund_id or ids.new("ref_", now)
    row = transactions.record_refund(
        refund_id=refund_id,
        payment_id=payment.id,
        merchant_id=payment.merchant_id,
        amount=amount,
        currency=payment.currency,
        now=now,
    )
    refund: Refund = Refund.objects.create(
        id=refund_id,
        merchant_id=payment.merchant_id,
        payment=payment,
        transaction=row,
        amount=amount,
        currency=payment.currency,
        created_at=now,
        updated_at=now,
        **request_context.columns(),
        **fields,
    )
    return refund


def ledger_fields(refund: Refund, now: datetime) -> dict[str, Any]:
    """The arguments of all postings of a refund."""
    return {"merchant_id": refund.merchant_id, "subject_id": refund.id, "amount": refund.amount, "now": now}


def lock(refund_id: str) -> tuple[Payment, Refund]:
    """Lock the payment, then the refund."""
    payment_id = Refund.objects.values_list("payment_id", flat=True).get(pk=refund_id)
    return Payment.objects.locked(payment_id), Refund.objects.locked(refund_id)


def fail(refund: Refund, payment: Payment, failure_code: str, now: datetime) -> None:
    """Pending becomes failed. The caller holds both locks."""
    refund.transition(RefundStatus.FAILED, failure_code=failure_code, updated_at=now)
    _publish("refund.failed", refund, now)
    _release([refund], payment, now)


def cancel(refunds: Sequence[Refund], payment: Payment, *, now: datetime) -> None:
    """Cancel pending refunds of a payment. The caller holds all locks. Raises transfers.AlreadySubmitted."""
    ordered = [refund.id for refund in refunds if refund.route]
    transfers.cancel(*ordered, now=now)
    approvals.cancel(*ordered, now=now)
    cause = request_context.current()
    canceled = {
        "awaiting_approval": False,
        "updated_at": now,
        "cancel_actor": cause.actor,
        "cancel_request_id": cause.request_id,
    }
    transition_all([(refund, canceled) for refund in refunds], RefundStatus.CANCELED)
    _release(refunds, payment, now)


def reversed_amount(payment: Payment) -> int:
    """Return the satang of the payment that its bank reversed."""
    return sum(RefundReversal.objects.filter(payment=payment).values_list("amount", flat=True))


def record_reversal(payment: Payment, *, reversal_id: str, route: str, amount: int, now: datetime) -> None:
    """Show `amount` satang that the bank reversed as a refund.

    The payer has this money. So refunds that leave no room for it are canceled if they are not submitted.
    The caller holds the payment's lock and posts to the ledger, because a reversal also takes reserved money.
    """
    RefundReversal.objects.create(
        reversal_id=reversal_id, payment=payment, amount=amount, route=route, created_at=now
    )
    if canceled := _in_the_way(payment, amount - payment.refundable_amount):
        cancel(canceled, payment, now=now)
    else:
        _record_reversal_refund(payment, now)


def _in_the_way(payment: Payment, amount: int) -> list[Refund]:
    """Lock the newest refunds that no bank has yet, until `amount` satang are found. They can be less."""
    if amount <= 0:
        return []
    pending = Refund.objects.filter(payment=payment, status=RefundStatus.PENDING)
    found = list(pending.select_for_update(no_key=True).order_by("-created_at", "-id"))
    orders = Transfer.objects.cancelable([refund.id for refund in found])
    free = set(orders.values_list("pk", flat=True))
    cancelable = [refund for refund in found if not refund.route or refund.id in free]
    sums = accumulate((refund.amount for refund in cancelable), initial=0)
    return [refund for refund, before in zip(cancelable, sums, strict=False) if before < amount]


def _record_reversal_refund(payment: Payment, now: datetime) -> None:
    """Store a completed refund of the reversed amount, as far as no other refund covers it.

    Called again after a refund fails or is canceled, so that nobody requests the reversed money again. The
    caller holds the payment's lock.
    """
    reversal = RefundReversal.objects.filter(payment=payment, refunded_amount__lt=F("amount")).first()
    if reversal is None or payment.refundable_amount == 0:
        return
    amount = min(reversal.amount - reversal.refunded_amount, payment.refundable_amount)
    payments.reserve_refund(payment, amount, now=now)
    refund = store(
        payment,
        amount,
        now,
        status=RefundStatus.COMPLETED,
        completed_at=now,
        reason=RefundReason.OTHER,
        note="Taken back by the bank.",
        reversal=reversal,
        route=reversal.route,
    )
    payments.complete_refund(payment, amount, now=now)
    transactions.complete_refunds(refund.id, status=TransactionStatus.SUCCEEDED)
    reversal.refunded_amount += amount
    reversal.save(update_fields=["refunded_amount"])
    _publish("refund.completed", refund, now)


def _release(refunds: Sequence[Refund], payment: Payment, now: datetime) -> None:
    """Give the reserved money back to the merchant's balance. The caller holds all locks."""
    merchant_id, amounts = payment.merchant_id, {refund.id: refund.amount for refund in refunds}
    payments.release_refund(payment, sum(amounts.values()))
    transactions.complete_refunds(*amounts, status=TransactionStatus.FAILED)
    _record_reversal_refund(payment, now)
    # Last, because other payments of this merchant wait for its lock.
    ledger.release(merchant_id=merchant_id, type=JournalType.REFUND_RELEASED, amounts=amounts, now=now)
    unsettled = {refund.id: refund.from_unsettled for refund in refunds if refund.from_unsettled}
    if unsettled and cards.return_unsettled(payment, sum(unsettled.values())):
        ledger.unsettle(merchant_id=merchant_id, amounts=unsettled, now=now)


def _publish(kind: str, refund: Refund, now: datetime) -> None:
    events.publish(events.NewEvent(refund.merchant_id, kind, refund.id, refund_object(refund), now))
