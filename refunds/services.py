"""Begin refunds, give them a destination, take them back. How they end: `refunds.completion`."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import transaction

from approvals import services as approvals
from banks import TransferOrder
from core import ids, rows
from ledger import services as ledger
from ledger.models import JournalType
from merchants.errors import BankNotConfigured
from merchants.models import Merchant
from payments import services as payments
from payments.errors import PaymentNotFound
from payments.models import Payment
from refunds import approval_handler, completion, destinations
from refunds.completion import TRANSFER_HANDLER, ledger_fields
from refunds.destinations import Destination
from refunds.errors import (
    PartialRefundNotSupported,
    RefundNotAddressable,
    RefundNotCancelable,
    RefundNotFound,
)
from refunds.models import Refund, RefundPendingReason, RefundStatus
from refunds.records import store
from transfers import services as transfers

__all__ = ["TRANSFER_HANDLER", "cancel", "create", "find", "lock_waiting", "send_waiting", "set_destination"]


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
    """Set `amount` satang (None: all that is left) aside and queue it for the bank, as one commit.

    Raises PaymentNotFound, PaymentNotRefundable, RefundAmountExceeded, InvalidDestination,
    PartialRefundNotSupported, BankNotConfigured, PayoutAccountNotAllowed, PayoutAccountTooNew,
    InsufficientFunds.
    """
    payment = _lock_payment(merchant, payment_id)
    reserved = payments.reserve_refund(payment, amount, now=now)
    refund = store(payment, reserved, now, **fields)
    if (chosen := destinations.choose(payment, destination, reserved, now=now)) is not None:
        _queue(refund, chosen, now)
    # Last, for its lock is the one that other payments of this merchant wait for.
    ledger.reserve(type=JournalType.REFUND_RESERVED, **ledger_fields(refund, now))
    return refund


def find(*, merchant: Merchant, refund_id: str) -> Refund:
    """Raises RefundNotFound."""
    found = None
    if ids.looks_right(refund_id, "ref_"):
        found = rows.fetch(Refund, id=refund_id, merchant_id=merchant.id)
    if found is None:
        raise RefundNotFound(id=refund_id)
    return found


@transaction.atomic
def set_destination(*, merchant: Merchant, refund_id: str, now: datetime, **destination: str) -> Refund:
    """Give a refund the account that it waits for.

    Raises RefundNotFound, RefundNotAddressable, BankNotConfigured, PayoutAccountNotAllowed,
    PayoutAccountTooNew.
    """
    payment, refund = _lock(merchant, refund_id)
    if refund.pending_reason != RefundPendingReason.AWAITING_DESTINATION:
        raise RefundNotAddressable(status=refund.pending_reason or refund.status)
    _queue(refund, destinations.to_account(payment, destination, now=now), now)
    return refund


def lock_waiting(payment: Payment) -> None:
    """Take the locks of `send_waiting`, for a caller who posts to the ledger before it.

    The caller holds the payment's lock.
    """
    if payment.amount_refunding and Refund.objects.awaiting_destination(payment):
        approvals.lock_limits(payment.merchant_id)


def send_waiting(payment: Payment, *, now: datetime) -> None:
    """The bank has said more of who paid: refunds that wait for an account go as if they were asked for now.

    The caller holds the payment's lock.
    """
    if not payment.amount_refunding:
        return
    for refund in Refund.objects.awaiting_destination(payment):
        # What cannot be sent there goes on waiting: its merchant names an account or cancels it.
        with suppress(PartialRefundNotSupported, BankNotConfigured):
            if (to := destinations.choose(payment, None, refund.amount, now=now)) is not None:
                _queue(refund, to, now)


@transaction.atomic
def cancel(*, merchant: Merchant, refund_id: str, now: datetime) -> Refund:
    """Take back a refund of which no bank was told. Raises RefundNotFound, RefundNotCancelable."""
    payment, refund = _lock(merchant, refund_id)
    if refund.status != RefundStatus.PENDING:
        raise RefundNotCancelable(status=refund.status)
    try:
        completion.cancel(refund, payment, now=now)
    except transfers.AlreadySubmitted:
        raise RefundNotCancelable(status=refund.pending_reason) from None
    return refund


@transaction.atomic
def cancel_unsent(*, refund_id: str, now: datetime) -> None:
    """End one that surely never reached its bank, and release its money. It is never sent after that.

    Raises transfers.AlreadySubmitted.
    """
    payment_id = Refund.objects.values_list("payment_id", flat=True).get(pk=refund_id)
    payment, refund = Payment.objects.locked(payment_id), Refund.objects.locked(refund_id)
    if refund.status != RefundStatus.PENDING:
        raise transfers.AlreadySubmitted(refund_id)
    completion.cancel(refund, payment, now=now)


def _lock_payment(merchant: Merchant, payment_id: str) -> Payment:
    """Under its lock. Raises PaymentNotFound."""
    if not ids.looks_right(payment_id, "pay_"):
        raise PaymentNotFound(id=payment_id)
    payment: Payment = Payment.objects.of(merchant).locked(payment_id)
    return payment


def _lock(merchant: Merchant, refund_id: str) -> tuple[Payment, Refund]:
    """Both under their locks, in the order of all locks. Raises RefundNotFound."""
    payment_id = find(merchant=merchant, refund_id=refund_id).payment_id
    return Payment.objects.locked(payment_id), Refund.objects.locked(refund_id)


def _queue(refund: Refund, to: Destination, now: datetime) -> None:
    order = TransferOrder(
        order_id=refund.id,
        purpose="refund",
        amount=refund.amount,
        bank_code=to.bank_code,
        account=to.account,
        account_name=to.account_name,
        charge_id=to.charge_id,
    )
    is_held = not to.is_payers and approval_handler.request_approval(refund, to, now=now)
    transfers.queue(order, route=to.route, at=now, merchant_id=refund.merchant_id, is_held=is_held)
    refund.set_fields(route=to.route, awaiting_approval=is_held, updated_at=now)
