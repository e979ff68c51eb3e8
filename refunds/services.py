"""Create refunds, give them a destination, cancel them. `refunds.completion` has their results."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import transaction

from approvals import services as approvals
from approvals.models import ApprovalKind
from core import ids
from core.database import rows
from ledger import services as ledger
from ledger.journal_types import JournalType
from merchants.errors import BankNotConfigured
from merchants.models import Merchant
from payments import cards, services as payments
from payments.models import Payment
from refunds import completion, destinations, errors
from refunds.completion import ledger_fields
from refunds.destinations import Destination
from refunds.models import Refund, RefundPendingReason, RefundStatus
from transfers import services as transfers

# Each is a row that one reversal of the payment cancels, inside the callback of its bank.
MAX_PENDING_REFUNDS = 100


@transaction.atomic
def create(
    *,
    merchant: Merchant,
    payment_id: str,
    now: datetime,
    amount: int | None = None,
    destination: Mapping[str, str] | None = None,
    **fields: Any,
) -> Refund:
    """Reserve `amount` satang (None: all that is left) and queue the transfer in one commit.

    Raises PaymentNotFound, PaymentNotRefundable, RefundAmountExceeded, InvalidDestination,
    TooManyPendingRefunds, PartialRefundNotSupported, BankNotConfigured, PayoutAccountNotAllowed,
    PayoutAccountTooNew, InsufficientFunds.
    """
    payment = Payment.objects.of(merchant).locked(payment_id, "payment_id")
    pending = Refund.objects.filter(payment=payment, status=RefundStatus.PENDING)
    if payment.amount_refunding and pending.count() >= MAX_PENDING_REFUNDS:
        raise errors.TooManyPendingRefunds(limit=MAX_PENDING_REFUNDS)
    reserved = payments.reserve_refund(payment, amount, now=now)
    is_card = payment.qr_code_id is None
    unsettled = cards.use_unsettled(payment, reserved) if is_card else 0
    refund = completion.store(payment, reserved, now, from_unsettled=unsettled, **fields)
    if (chosen := destinations.choose(payment, destination, reserved, now=now)) is not None:
        queue([refund], chosen, now)
    # Last, because other payments of this merchant wait for its lock.
    if unsettled:
        ledger.settle(merchant_id=merchant.id, amounts={refund.id: unsettled}, now=now)
    # The acquirer keeps its fee, so a refund needs more than its payment brought.
    ledger.reserve(type=JournalType.REFUND_RESERVED, **ledger_fields(refund, now), may_owe=is_card)
    return refund


def find(*, merchant: Merchant, refund_id: str) -> Refund:
    """Raises RefundNotFound."""
    return ids.find(refund_id, "ref_", Refund.objects.filter(merchant=merchant), errors.RefundNotFound)


@transaction.atomic
def set_destination(*, merchant: Merchant, refund_id: str, now: datetime, **destination: str) -> Refund:
    """Send a refund that waits for a destination to this account.

    Raises RefundNotFound, RefundNotAddressable, BankNotConfigured, PayoutAccountNotAllowed,
    PayoutAccountTooNew.
    """
    payment, refund = _lock(merchant, refund_id)
    check_addressable(refund)
    queue([refund], destinations.to_account(payment, destination, now=now), now)
    return refund


def check_addressable(refund: Refund) -> None:
    """Raises RefundNotAddressable if the refund does not wait for a destination."""
    if refund.pending_reason != RefundPendingReason.AWAITING_DESTINATION:
        raise errors.RefundNotAddressable(status=refund.pending_reason or refund.status)


def lock_waiting(payment: Payment) -> None:
    """Take the locks of `send_waiting` early, for a caller that posts to the ledger before it."""
    if payment.amount_refunding and Refund.objects.awaiting_destination(payment):
        approvals.lock_limits(payment.merchant_id)


def send_waiting(payment: Payment, *, now: datetime) -> None:
    """Send refunds that wait: the bank reported more about the payer. The caller holds the payment's lock."""
    if not payment.amount_refunding:
        return
    waiting = list(Refund.objects.awaiting_destination(payment))
    if not waiting:
        return
    # Refunds that this bank cannot send wait until the merchant names an account or cancels them. All have
    # the same destination: only a void depends on the amount, and if there are several, each is a part.
    with suppress(errors.PartialRefundNotSupported, BankNotConfigured):
        if (to := destinations.choose(payment, None, waiting[0].amount, now=now)) is not None:
            queue(waiting, to, now)


@transaction.atomic
def cancel(*, merchant: Merchant, refund_id: str, now: datetime) -> Refund:
    """Cancel a refund that was not submitted. Raises RefundNotFound, RefundNotCancelable."""
    payment, refund = _lock(merchant, refund_id)
    if refund.status != RefundStatus.PENDING:
        raise errors.RefundNotCancelable(status=refund.status)
    try:
        completion.cancel([refund], payment, now=now)
    except transfers.AlreadySubmitted:
        raise errors.RefundNotCancelable(status=refund.pending_reason) from None
    return refund


@transaction.atomic
def cancel_unsent(*, refund_id: str, now: datetime) -> None:
    """Cancel a refund whose order surely never reached the bank. Raises transfers.AlreadySubmitted."""
    payment, refund = completion.lock(refund_id)
    if refund.status != RefundStatus.PENDING:
        raise transfers.AlreadySubmitted(refund_id)
    completion.cancel([refund], payment, now=now)


def _lock(merchant: Merchant, refund_id: str) -> tuple[Payment, Refund]:
    """Lock the payment, then the refund. Raises RefundNotFound."""
    return completion.lock(find(merchant=merchant, refund_id=refund_id).id)


def queue(refunds: Sequence[Refund], to: Destination, now: datetime, *, note: str = "") -> None:
    """Queue the transfers of refunds of one payment, with a fixed number of statements.

    They are held if a second person must approve them. The caller holds all locks. note: what the second
    person reads, by default the note of each refund.
    """
    merchant_id = refunds[0].merchant_id
    orders = [to.order(refund.id, "refund", refund.amount) for refund in refunds]
    sealed = {order.order_id: transfers.seal_account(order) for order in orders}
    if not to.is_payers:
        items = [
            approvals.OutgoingMoney.of(
                order,
                ApprovalKind.REFUND,
                merchant_id,
                account_digest=sealed[refund.id].digest,
                note=note or refund.note or "",
            )
            for order, refund in zip(orders, refunds, strict=True)
        ]
        for refund, approval in zip(refunds, approvals.request_together(items, now=now), strict=True):
            refund.awaiting_approval = approval.is_waiting
    held = [refund.id for refund in refunds if refund.awaiting_approval]
    transfers.queue(*orders, accounts=sealed, route=to.route, at=now, merchant_id=merchant_id, held=held)
    for refund in refunds:
        refund.route, refund.updated_at = to.route, now
        refund.account_digest = sealed[refund.id].digest
    rows.update_rows(refunds, ["route", "account_digest", "awaiting_approval", "updated_at"])
