"""Begin refunds, give them a destination, take them back. How they end: `refunds.settling`."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import transaction

from approvals import services as approvals
from banks import Order
from core import ids, rows
from merchants.errors import BankNotConfigured
from merchants.models import Merchant
from payments import services as payments
from payments.errors import PaymentNotFound
from payments.models import Payment
from refunds import approving, canceling, destinations
from refunds.destinations import Destination
from refunds.errors import OnlyWhole, RefundNotAddressable, RefundNotCancelable, RefundNotFound
from refunds.models import PendingReason, Refund, Status
from refunds.settling import OWNER, posting
from refunds.storing import store
from transactions import ledger
from transactions.models import Fact
from transfers import services as transfers

__all__ = ["OWNER", "address", "address_waiting", "cancel", "create", "find", "prepare_to_address"]


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

    Raises PaymentNotFound, PaymentNotRefundable, RefundAmountExceeded, InvalidDestination, OnlyWhole,
    BankNotConfigured, PayoutAccountNotAllowed, PayoutAccountTooNew, InsufficientFunds.
    """
    payment = _payment(merchant, payment_id)
    reserved = payments.reserve_refund(payment, amount, now=now)
    refund = store(payment, reserved, now, **fields)
    if (chosen := destinations.choose(payment, destination, reserved, now=now)) is not None:
        _queue(refund, chosen, now)
    # Last, for its lock is the one that other payments of this merchant wait for.
    ledger.reserve(fact=Fact.REFUND_RESERVED, **posting(refund, now))
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
def address(*, merchant: Merchant, refund_id: str, now: datetime, **destination: str) -> Refund:
    """Give a refund the account that it waits for.

    Raises RefundNotFound, RefundNotAddressable, BankNotConfigured, PayoutAccountNotAllowed,
    PayoutAccountTooNew.
    """
    payment, refund = _locked(merchant, refund_id)
    if refund.pending_reason != PendingReason.AWAITING_DESTINATION:
        raise RefundNotAddressable(status=refund.pending_reason or refund.status)
    _queue(refund, destinations.named(payment, destination, now=now), now)
    return refund


def prepare_to_address(payment: Payment) -> None:
    """Take the locks of `address_waiting`, for a caller who posts to the ledger before it.

    The caller holds the payment's lock.
    """
    if payment.amount_refunding and Refund.objects.awaiting_destination(payment):
        approvals.lock_limits(payment.merchant_id)


def address_waiting(payment: Payment, *, now: datetime) -> None:
    """The bank has said more of who paid: refunds that wait for an account go as if they were asked for now.

    The caller holds the payment's lock.
    """
    if not payment.amount_refunding:
        return
    for refund in Refund.objects.awaiting_destination(payment):
        # What cannot be sent there goes on waiting: its merchant names an account or cancels it.
        with suppress(OnlyWhole, BankNotConfigured):
            if (to := destinations.choose(payment, None, refund.amount, now=now)) is not None:
                _queue(refund, to, now)


@transaction.atomic
def cancel(*, merchant: Merchant, refund_id: str, now: datetime) -> Refund:
    """Take back a refund of which no bank was told. Raises RefundNotFound, RefundNotCancelable."""
    payment, refund = _locked(merchant, refund_id)
    if refund.status != Status.PENDING:
        raise RefundNotCancelable(status=refund.status)
    try:
        canceling.cancel(refund, payment, now=now)
    except transfers.AlreadyTold:
        raise RefundNotCancelable(status=refund.pending_reason) from None
    return refund


@transaction.atomic
def give_up(*, refund_id: str, now: datetime) -> None:
    """End one that surely never reached its bank, and release its money. It is never sent after that.

    Raises transfers.AlreadyTold.
    """
    payment_id = Refund.objects.values_list("payment_id", flat=True).get(pk=refund_id)
    payment, refund = Payment.objects.locked(payment_id), Refund.objects.locked(refund_id)
    if refund.status != Status.PENDING:
        raise transfers.AlreadyTold(refund_id)
    canceling.cancel(refund, payment, now=now)


def _payment(merchant: Merchant, payment_id: str) -> Payment:
    """Under its lock. Raises PaymentNotFound."""
    if not ids.looks_right(payment_id, "pay_"):
        raise PaymentNotFound(id=payment_id)
    payment: Payment = Payment.objects.of(merchant).locked(payment_id)
    return payment


def _locked(merchant: Merchant, refund_id: str) -> tuple[Payment, Refund]:
    """Both under their locks, in the order of all locks. Raises RefundNotFound."""
    payment_id = find(merchant=merchant, refund_id=refund_id).payment_id
    return Payment.objects.locked(payment_id), Refund.objects.locked(refund_id)


def _queue(refund: Refund, to: Destination, now: datetime) -> None:
    order = Order(
        order_id=refund.id,
        purpose="refund",
        amount=refund.amount,
        bank_code=to.bank_code,
        account=to.account,
        account_name=to.account_name,
        charge_id=to.charge_id,
    )
    is_held = not to.is_payers and approving.judge(refund, to, now=now)
    transfers.queue(order, route=to.route, at=now, merchant_id=refund.merchant_id, is_held=is_held)
    refund.note_down(route=to.route, awaiting_approval=is_held, updated_at=now)
