"""Every change of a payment. The caller opens the transaction and holds the lock of the payment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import F

from core import money, vault
from core.database import rows
from core.database.state_machines import transition_all
from ledger import services as ledger
from ledger.models import AccountType
from merchants.models import Merchant
from payments import payers
from payments.errors import PaymentNotHeld, PaymentNotRefundable, RefundAmountExceeded
from payments.models import HOLD_OF, PayerMatch, Payment, PaymentStatus
from payments.payers import Payer
from payments.shapes import event_data
from transactions import services as transactions
from webhooks import events

# Starts at the expiry of the last batch: entries of expired payments stay in the index until vacuum.
EXPIRE_OVERDUE = f"""
UPDATE payments_payment AS t SET status = '{PaymentStatus.EXPIRED}', updated_at = expires_at
WHERE id = ANY(ARRAY(
    SELECT id FROM payments_payment
    WHERE status = '{PaymentStatus.PENDING}' AND expires_at >= %s AND expires_at <= %s
    ORDER BY expires_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
))
RETURNING {rows.columns(Payment, "t")}
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class PaidPayment:
    """A payment that its bank or acquirer reports as paid."""

    payment: Payment
    paid_at: datetime
    payer: Payer
    received: int | None = None  # satang that came in, if they can differ from the amount
    into: AccountType = AccountType.AVAILABLE  # the account of the merchant that gets them
    fee: ledger.Fee | None = ledger.NO_FEE  # None: not known yet


def draft(
    payment_id: str, *, created_at: datetime, client_bank_account: str | None = None, **fields: Any
) -> Payment:
    """Return a pending payment that the caller stores together with its QR code or charge."""
    payment = rows.new(
        Payment,
        id=payment_id,
        status=PaymentStatus.PENDING,
        currency=money.CURRENCY,
        created_at=created_at,
        updated_at=created_at,
        **fields,
    )
    if client_bank_account is not None:
        payment.seal(client_bank_account)
    payment.client_bank_account = client_bank_account  # so that the response need not open it
    return payment


def succeed(paid: Sequence[PaidPayment], *, source: str, now: datetime) -> None:
    """Make pending or expired payments succeeded, with a fixed number of statements.

    A payment cannot be paid before it was created, whatever the bank or the acquirer says.

    source: the ledger account that the money comes from.
    """
    changes = []
    for each in paid:
        is_other_amount = each.received not in (None, each.payment.amount)
        fields = {
            "completed_at": each.paid_at
            if each.payment.can_be_paid_at(each.paid_at)
            else each.payment.created_at,
            "updated_at": now,
            "amount_received": each.received if is_other_amount else None,
            "fee": None if each.fee is None else each.fee.amount,
            "fee_vat": None if each.fee is None else each.fee.vat,
            **_payer_fields(each.payment, each.payer),
        }
        changes.append((each.payment, fields))
    payers.add_holds(changes)
    transition_all(changes, PaymentStatus.SUCCEEDED)
    payments = [each.payment for each in paid]
    credits = [
        ledger.Credit(
            each.payment.merchant_id,
            each.payment.id,
            each.payment.received,
            each.into,
            each.fee or ledger.NO_FEE,
        )
        for each in paid
    ]
    transactions.record_payments(credits, currency=money.CURRENCY, source=source, now=now)
    publish("payment.succeeded", payments, now)


def charge_fee(
    payment: Payment, fee: ledger.Fee, *, source: str, is_unsettled: bool = False, now: datetime
) -> None:
    """Take a fee that is known after the payment succeeded. source, is_unsettled: see `ledger.charge_fee`."""
    payment.set_fields(fee=fee.amount, fee_vat=fee.vat, updated_at=now)
    publish("payment.fee_known", [payment], now)
    if fee.total:
        ledger.charge_fee(
            merchant_id=payment.merchant_id,
            subject_id=payment.id,
            fee=fee,
            source=source,
            is_unsettled=is_unsettled,
            now=now,
        )


def correct_fee(payment: Payment, fee: ledger.Fee, *, source: str, now: datetime) -> None:
    """Replace the fee of a payment, because the statement of its bank, the account `source`, names another.

    The database knows whether it does.
    """
    before = ledger.Fee(payment.fee or 0, payment.fee_vat or 0)
    payment.set_fields(fee=fee.amount, fee_vat=fee.vat, updated_at=now)
    publish("payment.fee_known", [payment], now)
    ledger.correct_fee(
        merchant_id=payment.merchant_id, subject_id=payment.id, before=before, fee=fee, source=source, now=now
    )


def add_payer_details(payment: Payment, payer: Payer, *, now: datetime) -> None:
    """Store payer details that were missing, and end the hold if the payer is the named client."""
    fields, was_held = _payer_fields(payment, payer), payment.hold is not None
    new = {name: value for name, value in fields.items() if value and not getattr(payment, name)}
    if payment.payer_matches == PayerMatch.UNKNOWN and fields["payer_matches"]:
        new["payer_matches"] = fields["payer_matches"]
        new["hold"] = HOLD_OF.get(fields["payer_matches"]) if was_held else None
    payment.set_fields(**new)
    if was_held and payment.hold is None:
        publish("payment.hold_lifted", [payment], now)


def lift_hold(merchant: Merchant, payment_id: str, *, now: datetime) -> Payment:
    """End the hold of a payment: the merchant knows its payer. Raises PaymentNotFound, PaymentNotHeld."""
    payment = Payment.objects.of(merchant).locked(payment_id)
    if payment.hold is None:
        raise PaymentNotHeld()
    payment.merchant = merchant
    payment.set_fields(hold=None, updated_at=now)
    publish("payment.hold_lifted", [payment], now)
    return payment


def fail(payment: Payment, *, failure_code: str, now: datetime) -> None:
    payment.transition(PaymentStatus.FAILED, failure_code=failure_code, updated_at=now)
    transactions.record_failure(
        payment_id=payment.id,
        merchant_id=payment.merchant_id,
        amount=payment.amount,
        currency=payment.currency,
        now=now,
    )
    publish("payment.failed", [payment], now)


def expire(payments: Sequence[Payment], *, now: datetime) -> None:
    """Make pending payments expired as of their `expires_at`."""
    changes = [
        (payment, {"expires_at": payment.expires_at, "updated_at": payment.expires_at})
        for payment in payments
    ]
    transition_all(changes, PaymentStatus.EXPIRED)
    _publish_expiry(payments, now)


def bring_expiry_forward(payments: Sequence[Payment], *, span: timedelta, now: datetime) -> int:
    """Let pending payments expire `span` earlier, but not before `now`. Expires those that are due then.

    For test merchants (`testclock`). Returns how many expired.
    """
    for payment in payments:
        if payment.expires_at is not None:
            payment.expires_at, payment.updated_at = max(payment.expires_at - span, now), now
    due = [payment for payment in payments if payment.status_at(now) == PaymentStatus.EXPIRED]
    expire(due, now=now)
    later = [payment for payment in payments if payment.status == PaymentStatus.PENDING]
    rows.update_rows(later, ["expires_at", "updated_at"])
    return len(due)


def expire_overdue(*, now: datetime, since: datetime, limit: int) -> list[Payment]:
    """Do the same to up to `limit` payments that expired from `since` on and that nobody has locked."""
    found = rows.run(EXPIRE_OVERDUE, [since, now, limit]).fetchall()
    payments = [rows.instance(Payment, values) for values in found]
    _publish_expiry(payments, now)
    return payments


def reserve_refund(payment: Payment, amount: int | None, *, now: datetime) -> int:
    """Reserve `amount` satang, or all that is left, for a refund. Returns how much.

    Raises PaymentNotRefundable, RefundAmountExceeded.
    """
    status, left = payment.status_at(now), payment.refundable_amount
    if status != PaymentStatus.SUCCEEDED:
        raise PaymentNotRefundable(status=status)
    wanted = left if amount is None else amount
    if not 0 < wanted <= left:
        detail = f"must be at most {left} satang; received {'nothing' if amount is None else amount}"
        raise RefundAmountExceeded(param="amount", detail=detail, left=money.display(left))
    _change_refund_amounts(payment, refunding=wanted)
    return wanted


def release_refund(payment: Payment, amount: int) -> None:
    """Undo `reserve_refund`: the refund failed."""
    _change_refund_amounts(payment, refunding=-amount)


def complete_refund(payment: Payment, amount: int, *, now: datetime) -> None:
    """Record that reserved money went back. A payment becomes refunded when all of it went back."""
    _change_refund_amounts(payment, refunding=-amount, refunded=amount, updated_at=now)
    if payment.amount_refunded == payment.received:
        payment.transition(PaymentStatus.REFUNDED, hold=None)
        transactions.mark_refunded(payment_id=payment.id)


def _change_refund_amounts(payment: Payment, *, refunding: int, refunded: int = 0, **fields: Any) -> None:
    """Change the counters. A constraint of the database keeps them within the amount."""
    Payment.objects.filter(pk=payment.pk).update(
        amount_refunding=F("amount_refunding") + refunding,
        amount_refunded=F("amount_refunded") + refunded,
        **fields,
    )
    payment.refresh_from_db(fields=["amount_refunding", "amount_refunded", *fields])


def _publish_expiry(payments: Sequence[Payment], now: datetime) -> None:
    if payments and settings.EXPIRY_EVENTS:
        publish("payment.failed", payments, now)


def publish(kind: str, payments: Sequence[Payment], now: datetime) -> None:
    """Publish an event of each payment. `payment.pending` is the first one of a payment without a result."""
    events.publish_many(
        [
            events.NewEvent(payment.merchant_id, kind, payment.id, event_data(payment), now)
            for payment in payments
        ]
    )


def _payer_fields(payment: Payment, payer: Payer) -> dict[str, Any]:
    return {
        "payer_name": payer.name or None,
        "payer_bank_code": payer.bank_code or None,
        "payer_account_sealed": vault.seal(payer.account, context=payment.id) if payer.account else None,
        "payer_matches": payers.matches(payment, payer),
        "bank_reference": payer.transaction_id or None,
    }
