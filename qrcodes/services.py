"""Make QR codes, find them and end them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Model

from core import ids, request_context
from core.database import rows
from core.thai import references, thaiqr
from merchants.errors import BankNotConfigured, as_suspension
from merchants.models import Merchant, Mode
from payments import services as payments
from payments.models import OPEN_REFERENCE, PAID_STATUSES, Payment, PaymentStatus
from payments.shapes import event_data
from qrcodes.errors import QrCodeNotExpirable, QrCodeNotFound, ReferenceInUse
from qrcodes.models import QrCode
from webhooks import events, wakeup
from webhooks.events import Subscription

# What a code in the place of another one has in common with it. The amount is the same, too.
RENEWED = ("reference", "metadata", "client_name", "client_bank_name", "client_bank_account")
# From the first code of an order: an old address makes no codes for ever. `sql/rules.sql` has it too.
RENEWABLE_FOR = timedelta(days=7)


class NotRenewable(Exception):
    """No code takes the place of this one: it is not over, or the shop wants none."""


@dataclass(frozen=True, slots=True)
class NewQrCode:
    """A code, its payment and the rows of its event, not stored yet."""

    qr_code: QrCode
    payment: Payment
    event_rows: list[Model]

    @property
    def rows(self) -> list[Model]:
        return [self.payment, self.qr_code, *self.event_rows]


def generate(
    *,
    merchant: Merchant,
    subscriptions: Sequence[Subscription],
    now: datetime,
    amount: int,
    expiry_minutes: int,
    replaces: QrCode | None = None,
    payment_link_id: str | None = None,
    **fields: Any,
) -> NewQrCode:
    """Build a code for `amount` satang with its pending payment.

    Raises MerchantSuspended, BankNotConfigured.

    `subscriptions` of the merchant's endpoints: they get the event. replaces: see `renew`. Each visitor of a
    payment link may have a code with its reference.
    """
    merchant.check_open()
    terms = merchant.new_terms
    if not terms.bank or not terms.biller_id:
        raise BankNotConfigured()
    payment_id = Payment.new_id(now)
    payment = payments.draft(
        payment_id,
        merchant=merchant,
        qr_code_id=ids.of_code(payment_id),
        amount=amount,
        created_at=now,
        expires_at=now + timedelta(minutes=expiry_minutes),
        payment_link_id=payment_link_id,
        holds_reference=merchant.refuses_open_reference and "reference" in fields and payment_link_id is None,
        **fields,
    )
    is_test = merchant.mode == Mode.TEST
    reference1 = (
        references.new_checked(terms.biller_id, settings.SANDBOX_BANK_SECRET) if is_test else references.new()
    )  # random; the unique index refuses one that was used before
    qr_code = rows.new(
        QrCode,
        merchant=merchant,
        payment=payment,
        replaces_id=None if replaces is None else replaces.pk,
        bank=terms.bank,
        biller_id=terms.biller_id,
        reference1=reference1,
        qr_data=thaiqr.bill_payment(
            biller_id=terms.biller_id,
            reference1=reference1,
            reference2=terms.reference2,
            reference3=terms.reference3,
            amount=amount,
        ),
        created_at=now,
    )
    event = events.NewEvent(merchant.id, "payment.pending", payment.id, event_data(payment), now)
    return NewQrCode(qr_code, payment, events.prepare(event, subscriptions))


def find(qr_code_id: str, *, merchant: Merchant | None = None) -> QrCode:
    """Find a code of this merchant, or of any merchant for its public picture. Raises QrCodeNotFound."""
    where = {} if merchant is None else {"merchant": merchant}
    codes = QrCode.objects.select_related("payment" if where else "payment__merchant").filter(**where)
    return ids.find(qr_code_id, "qr_", codes, QrCodeNotFound, key=ids.of_payment(qr_code_id))


@transaction.atomic
def free_reference(new: NewQrCode, refused: IntegrityError, *, now: datetime) -> None:
    """Store the expiry of an overdue code that has the reference of `new`, which the database refused.

    Raises ReferenceInUse if the other code is open, and the refusal itself if it has another reason.
    """
    if OPEN_REFERENCE not in str(refused):
        raise refused
    holders = Payment.objects.of(new.payment.merchant).filter(
        reference=new.payment.reference, holds_reference=True, status=PaymentStatus.PENDING
    )
    for holder in holders.select_for_update(no_key=True):
        if holder.status_at(now) == PaymentStatus.PENDING:
            raise ReferenceInUse(param="reference", id=holder.qr_code_id)
        payments.expire([holder], now=now)


@transaction.atomic
def expire(*, merchant: Merchant, qr_code_id: str, now: datetime) -> QrCode:
    """Expire a pending code now. Raises QrCodeNotFound, QrCodeNotExpirable."""
    qr_code = find(qr_code_id, merchant=merchant)
    payment = Payment.objects.locked(qr_code.payment_id)
    if payment.status_at(now) != PaymentStatus.PENDING:
        raise QrCodeNotExpirable(status=payment.status_at(now))
    payment.expires_at = now
    payments.expire([payment], now=now)
    context = request_context.current()
    qr_code.payment, qr_code.actor, qr_code.request_id = payment, context.actor, context.request_id
    qr_code.save(update_fields=["actor", "request_id"])
    return qr_code


def is_renewable(payment: Payment, now: datetime) -> bool:
    """Whether a payer may ask for another code: this one ended unpaid, and not by the word of the shop.

    The reference tells the shop which order the new payment is for.
    """
    return (
        payment.status_at(now) in (PaymentStatus.EXPIRED, PaymentStatus.FAILED)
        and payment.reference is not None
        and payment.payment_link_id is None  # its page makes another
        and not payment.has_exceptions
        and not payment.qr_code.actor
        and payment.merchant.suspended_at is None
        and not _is_order_paid(payment)
        and now < _first_made_at(payment) + RENEWABLE_FOR
    )


def _first_made_at(payment: Payment) -> datetime:
    """When the first of the codes was made that this payment's took the place of, or it itself."""
    made_at: datetime = rows.run("SELECT qrcodes_first_made_at(%s)", [payment.pk]).fetchone()[0]
    return made_at


def _is_order_paid(payment: Payment) -> bool:
    """Whether a later payment of the shop with the same reference succeeded."""
    assert payment.reference is not None, "a page asks only about orders with one"
    same = Payment.objects.of(payment.merchant).of_reference(payment.reference)
    return same.filter(created_at__gt=payment.created_at, status__in=PAID_STATUSES).exists()


def replacement_of(payment: Payment) -> QrCode | None:
    """The code that took the place of this payment's."""
    return QrCode.objects.filter(replaces=payment.pk).first()


@transaction.atomic
def renew(payment: Payment, *, now: datetime) -> QrCode:
    """The code in the place of one that a payer could not pay. Each code has one at most, whoever asks.

    Raises NotRenewable, MerchantSuspended, BankNotConfigured.
    """
    old = Payment.objects.locked(payment.pk)  # a second click waits here
    if (found := replacement_of(old)) is not None:
        return found
    if not is_renewable(old, now):
        raise NotRenewable
    merchant, lifetime = old.merchant, (old.expires_at or now) - old.created_at
    if old.status == PaymentStatus.PENDING:
        payments.expire([old], now=now)
    fields = {name: value for name in RENEWED if (value := getattr(old, name)) is not None}
    new = generate(
        merchant=merchant,
        subscriptions=events.subscriptions_of([merchant.pk]).get(merchant.pk, []),
        now=now,
        amount=old.amount,
        expiry_minutes=max(1, round(lifetime.total_seconds() / 60)),
        replaces=old.qr_code,
        **fields,
    )
    try:
        with transaction.atomic():
            rows.insert_together(new.rows)
    except IntegrityError as refused:
        if OPEN_REFERENCE in str(refused):
            raise NotRenewable from None  # the shop made another code for this order
        raise as_suspension(refused) from None
    if events.has_deliveries(new.event_rows):
        wakeup.wake_on_commit()
    return new.qr_code
