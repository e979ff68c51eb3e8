"""The JSON of a payment: its API object and the data of its events."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, Sum, prefetch_related_objects
from django.utils.translation import gettext_noop

from core import money, vault
from core.clock import iso, iso_or_none
from merchants.models import Mode
from payments.models import HELD_STATUSES, Payment, PaymentException, PaymentStatus

# Exceptions that the object of a payment shows. `GET .../exceptions` lists all.
MAX_SHOWN = 20
UNMATCHED_MONEY = gettext_noop("A payment of the same amount arrived with an unknown reference.")


def payment_object(payment: Payment, now: datetime) -> dict[str, Any]:
    """Both objects of the interface in one: `card` is null for QR codes, `qr_code_id` for cards.

    It needs the merchant of the payment: set it where it is known, which saves a query.
    """
    exceptions = _exceptions(payment)
    return {
        "payment_id": payment.id,
        "qr_code_id": payment.qr_code_id,
        "status": payment.status_at(now),
        "amount": payment.amount,
        "amount_display": money.display(payment.amount),
        "currency": payment.currency,
        "reference": payment.reference,
        "description": payment.description,
        "created_at": iso(payment.created_at),
        "updated_at": iso(_updated_at(payment, now)),
        "completed_at": iso_or_none(payment.completed_at),
        "card": _card(payment),
        "metadata": payment.metadata,
        "amount_received": _amount_received(payment, exceptions),
        "amount_refunded": payment.amount_refunded,
        "failure_code": payment.failure_code,
        "expires_at": iso_or_none(payment.expires_at),
        "authorize_uri": payment.authorize_uri if payment.status == PaymentStatus.PENDING else None,
        "exceptions": [exception_object(each) for each in exceptions[-MAX_SHOWN:]],
        "exceptions_has_more": len(exceptions) > MAX_SHOWN,
        "payer": _payer(payment),
        "bank_transaction_id": payment.bank_transaction_id,
        "refunds": {
            "completed": payment.amount_refunded,
            "pending": payment.amount_refunding,
            "remaining": payment.refundable_amount if payment.status == PaymentStatus.SUCCEEDED else 0,
        },
        "livemode": payment.merchant.mode == Mode.LIVE,
    }


def load_exceptions(payments: Sequence[Payment]) -> None:
    """Read the exceptions of these payments by one query, or by none: most payments have none."""
    prefetch_related_objects([each for each in payments if each.has_exceptions], newest_exceptions())


def event_data(payment: Payment) -> dict[str, Any]:
    """`data` of the payment events. `amount_received` is there only if it differs from the amount."""
    received = payment.amount_received
    return {
        "payment_id": payment.id,
        "status": payment.status,
        "amount": payment.amount,
        "amount_display": money.display(payment.amount),
        "currency": payment.currency,
        "qr_code_id": payment.qr_code_id,
        "reference": payment.reference,
        "metadata": payment.metadata,
        "failure_code": payment.failure_code,
        **({} if received is None else {"amount_received": received}),
    }


def exception_object(exception: PaymentException) -> dict[str, Any]:
    """Money that did not fit, as the payment, its events and its own endpoints show it."""
    return {
        "exception_id": exception.id,
        "reason": exception.reason,
        "amount": exception.amount,
        "amount_display": money.display(exception.amount),
        "status": exception.status,
        "at": iso(exception.reported_at),
    }


def unmatched_money_object(exception_id: str, reported_at: datetime) -> dict[str, Any]:
    """Money with an unknown reference that may be for the payment. The operator decides about it."""
    return {"exception_id": exception_id, "message": UNMATCHED_MONEY, "at": iso(reported_at)}


def exception_event_data(exception: PaymentException, now: datetime) -> dict[str, Any]:
    """`data` of the events about an exception: its payment at this moment, and the exception."""
    payment = exception.payment
    return event_data(payment) | {
        "status": payment.status_at(now),
        "amount_received": _amount_received(payment, _exceptions(payment)),
        "exception": exception_object(exception),
    }


def newest_exceptions(path: str = "exceptions") -> Prefetch[Any]:
    """What objects of payments need of the exceptions, however many there are."""
    newest = PaymentException.objects.order_by("-reported_at", "-id")
    return Prefetch(path, queryset=newest[: MAX_SHOWN + 1], to_attr="newest_exceptions")


def _exceptions(payment: Payment) -> Sequence[PaymentException]:
    """The newest exceptions of the payment, the oldest of them first; one more than MAX_SHOWN if there are.

    The flag saves a query: most payments have none.
    """
    if not payment.has_exceptions:
        return ()
    load_exceptions([payment])
    newest: list[PaymentException] = payment.newest_exceptions  # type: ignore[attr-defined]
    return newest[::-1]


def _amount_received(payment: Payment, exceptions: Sequence[PaymentException]) -> int | None:
    """The satang that paid, if it is another amount. Before a payment is paid, what is held for it."""
    if payment.completed_at is not None:
        return payment.amount_received
    if len(exceptions) > MAX_SHOWN:
        held = payment.exceptions.filter(status__in=HELD_STATUSES).order_by()
        return int(held.aggregate(satang=Sum("amount"))["satang"] or 0) or None
    return sum(each.held_amount for each in exceptions) or None


def _payer(payment: Payment) -> dict[str, str | None] | None:
    """Who paid, as the bank reported it; null before that, and for cards."""
    code, account = payment.payer_bank_code, payment.payer_account
    if payment.payer_name is None and code is None and account is None:
        return None
    return {
        "name": payment.payer_name,
        "bank_code": code,
        "bank_name": payment.payer_bank_name,
        "bank_account": vault.masked(account),
    }


def _updated_at(payment: Payment, now: datetime) -> datetime:
    """The time of the last change. Expiry counts, even if it is not stored yet."""
    if payment.status_at(now) != payment.status and payment.expires_at is not None:
        return payment.expires_at
    return payment.updated_at


def _card(payment: Payment) -> dict[str, str | None] | None:
    if payment.card_last4 is None:
        return None
    return {"last4": payment.card_last4, "brand": payment.card_brand}
