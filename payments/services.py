"""Every change of a payment, and nothing else anywhere. One commit per change; the caller opens it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F

from core import money, rows, vault
from core.state_machines import transition_all
from ledger.bulk import Credit
from payments.errors import PaymentNotRefundable, RefundAmountExceeded
from payments.models import Payment, PaymentStatus
from payments.shapes import event_data
from transactions import services as transactions
from webhooks import events

EXPIRY_BATCH = 500


@dataclass(frozen=True, slots=True)
class Payer:
    """Who paid, and by which transaction, as the bank says; empty where it does not say."""

    name: str = ""
    bank_code: str = ""
    account: str = ""
    transaction_id: str = ""


@dataclass(frozen=True, slots=True)
class PaidPayment:
    """A payment of which its bank says that all of it was paid, when and by whom."""

    payment: Payment
    paid_at: datetime
    payer: Payer
    is_confirmed: bool = True


def draft(
    payment_id: str, *, created_at: datetime, client_bank_account: str | None = None, **fields: Any
) -> Payment:
    """A pending payment that is not stored yet (the caller inserts it with what belongs to it)."""
    sealed = None if client_bank_account is None else vault.seal(client_bank_account, context=payment_id)
    return rows.new(
        Payment,
        id=payment_id,
        status=PaymentStatus.PENDING,
        currency=money.CURRENCY,
        client_bank_account_sealed=sealed,
        created_at=created_at,
        updated_at=created_at,
        **fields,
    )


def succeed(
    payment: Payment,
    *,
    paid_at: datetime,
    payer: Payer,
    source: str,
    now: datetime,
    received: int | None = None,
    is_confirmed: bool = True,
) -> None:
    """Pending or expired becomes succeeded. The caller holds the lock.

    paid_at: the bank's time. source: the account (see `ledger.accounts`) that the money comes from.
    received: satang that came in, where they may differ from what was asked. is_confirmed: False where only
    an uploaded statement reports the money.
    """
    fields = _success_fields(payment, paid_at, payer, now)
    if received not in (None, payment.amount):
        fields["amount_received"] = received
    payment.transition(PaymentStatus.SUCCEEDED, **fields)
    transactions.record_payment(source=source, is_confirmed=is_confirmed, **_transaction_fields(payment, now))
    _publish("payment.succeeded", payment, now)


def add_payer_details(payment: Payment, payer: Payer) -> None:
    """The bank has said more of who paid; what it said before stays. The caller holds the lock."""
    said = _payer_fields(payment, payer)
    news = {name: value for name, value in said.items() if value and not getattr(payment, name)}
    for name, value in news.items():
        setattr(payment, name, value)
    payment.save(update_fields=list(news))


def succeed_all(paid: Sequence[PaidPayment], *, source: str, now: datetime) -> None:
    """What `succeed` does to each, by a few statements; `source` is a bank's. The caller holds all locks."""
    changes = [(each.payment, _success_fields(each.payment, each.paid_at, each.payer, now)) for each in paid]
    transition_all(changes, PaymentStatus.SUCCEEDED)
    payments = [each.payment for each in paid]
    credits = [
        Credit(each.payment.merchant_id, each.payment.id, each.payment.received, each.is_confirmed)
        for each in paid
    ]
    transactions.record_payments(credits, currency=money.CURRENCY, source=source, now=now)
    events.publish_many([_event(payment, "payment.succeeded", now) for payment in payments])


def fail(payment: Payment, *, failure_code: str, now: datetime) -> None:
    """Pending becomes failed. The caller holds the lock."""
    payment.transition(PaymentStatus.FAILED, failure_code=failure_code, updated_at=now)
    transactions.record_failure(**_transaction_fields(payment, now))
    _publish("payment.failed", payment, now)


def publish_pending(payment: Payment, *, now: datetime) -> None:
    """It is pending, and the merchant has been told nothing else of it yet. The caller holds the lock."""
    _publish("payment.pending", payment, now)


def expire(payment: Payment, *, expires_at: datetime, now: datetime) -> None:
    """Pending becomes expired, as of `expires_at`. The caller holds the lock."""
    payment.transition(PaymentStatus.EXPIRED, expires_at=expires_at, updated_at=expires_at)
    if settings.EXPIRY_EVENTS:
        _publish("payment.failed", payment, now)


def reserve_refund(payment: Payment, amount: int | None, *, now: datetime) -> int:
    """Set `amount` satang, or all that is left, aside to go back; returns how much.

    The caller holds the lock. Raises PaymentNotRefundable, RefundAmountExceeded.
    """
    status, left = payment.status_at(now), payment.refundable_amount
    if status != PaymentStatus.SUCCEEDED:
        raise PaymentNotRefundable(status=status)
    wanted = left if amount is None else amount
    if not 0 < wanted <= left:
        raise RefundAmountExceeded(param="amount", left=money.display(left))
    _change_refund_amounts(payment, refunding=wanted)
    return wanted


def release_refund(payment: Payment, amount: int) -> None:
    """What was set aside does not go back. The caller holds the lock."""
    _change_refund_amounts(payment, refunding=-amount)


def complete_refund(payment: Payment, amount: int, *, now: datetime) -> None:
    """What was set aside went back; if that is all of the payment it becomes refunded.

    The caller holds the lock.
    """
    _change_refund_amounts(payment, refunding=-amount, refunded=amount, updated_at=now)
    if payment.amount_refunded == payment.received:
        payment.transition(PaymentStatus.REFUNDED)
        transactions.mark_refunded(payment_id=payment.id)


def _change_refund_amounts(payment: Payment, *, refunding: int, refunded: int = 0, **fields: Any) -> None:
    """Change the counters, within what a constraint of the database allows, whoever holds which lock."""
    Payment.objects.filter(pk=payment.pk).update(
        amount_refunding=F("amount_refunding") + refunding,
        amount_refunded=F("amount_refunded") + refunded,
        **fields,
    )
    payment.refresh_from_db(fields=["amount_refunding", "amount_refunded", *fields])


def store_expiry(payment: Payment, now: datetime) -> None:
    """Write down what the clock has done already, before something else moves the payment."""
    if payment.status_at(now) != payment.status and payment.expires_at is not None:
        expire(payment, expires_at=payment.expires_at, now=now)


def expire_due(*, now: datetime, batch: int = EXPIRY_BATCH) -> int:
    """Materialise what is overdue, `batch` payments a commit; sweeps may run at once. Returns how many."""
    swept = 0
    while True:
        count = _expire_batch(now, batch)
        swept += count
        if count < batch:
            return swept


@transaction.atomic
def _expire_batch(now: datetime, batch: int) -> int:
    due = Payment.objects.overdue(now).order_by("expires_at")
    payments = list(due.select_for_update(skip_locked=True, no_key=True)[:batch])
    transition_all(
        [(payment, {"updated_at": payment.expires_at}) for payment in payments], PaymentStatus.EXPIRED
    )
    if settings.EXPIRY_EVENTS:
        events.publish_many([_event(payment, "payment.failed", now) for payment in payments])
    return len(payments)


def _publish(kind: str, payment: Payment, now: datetime) -> None:
    events.publish(_event(payment, kind, now))


def _event(payment: Payment, kind: str, now: datetime) -> events.NewEvent:
    return events.NewEvent(payment.merchant_id, kind, payment.id, event_data(payment), now)


def _success_fields(payment: Payment, paid_at: datetime, payer: Payer, now: datetime) -> dict[str, Any]:
    return {"completed_at": paid_at, "updated_at": now, **_payer_fields(payment, payer)}


def _payer_fields(payment: Payment, payer: Payer) -> dict[str, Any]:
    return {
        "payer_name": payer.name or None,
        "payer_bank_code": payer.bank_code or None,
        "payer_account_sealed": vault.seal(payer.account, context=payment.id) if payer.account else None,
        "payer_differs": _payer_differs(payment, payer),
        "bank_transaction_id": payer.transaction_id or None,
    }


def _payer_differs(payment: Payment, payer: Payer) -> bool:
    """Shown to staff, never a reason to refuse money: banks cut names and mask accounts."""
    account, name = payment.client_bank_account, payment.client_name
    other_account = bool(account and payer.account) and account[-4:] != payer.account[-4:]  # type: ignore[index]
    other_name = bool(name and payer.name) and name.casefold() != payer.name.casefold()  # type: ignore[union-attr]
    return other_account or other_name


def _transaction_fields(payment: Payment, now: datetime) -> dict[str, Any]:
    return {
        "payment_id": payment.id,
        "merchant_id": payment.merchant_id,
        "amount": payment.received,
        "currency": payment.currency,
        "now": now,
    }
