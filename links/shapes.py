from datetime import datetime
from typing import Annotated, TypedDict

from core import money
from core.clock import iso, iso_or_none
from core.http import objects
from links import models
from qrcodes.models import MAX_EXPIRY


class PaymentLinkObject(TypedDict):
    """A page on which customers pay an amount of yours, or one that they choose."""

    payment_link_id: objects.PaymentLinkId
    url: Annotated[str, objects.URI, "The page. Send it to the customer, or print it as a QR code."]
    status: Annotated[
        str,
        objects.one_of(models.PaymentLinkStatus),
        "`completed`: it was paid `max_payments` times. Only an active link makes codes.",
    ]
    amount: Annotated[objects.Amount | None, "Satang. Null if the customer chooses the amount."]
    amount_display: objects.AmountDisplay | None
    amount_min: Annotated[objects.Amount | None, "Satang: the smallest amount that the customer can choose."]
    amount_max: Annotated[objects.Amount | None, "Satang: the largest amount that the customer can choose."]
    currency: objects.Currency
    description: Annotated[str | None, objects.up_to(models.MAX_DESCRIPTION_LENGTH), "The page shows it."]
    reference: Annotated[str | None, objects.up_to(models.MAX_REFERENCE_LENGTH), "Each payment has it."]
    metadata: objects.Metadata | None
    max_payments: Annotated[
        int | None, objects.between(1, models.MAX_PAYMENTS), "How often it can be paid. Null is any number."
    ]
    payments: Annotated[
        int,
        objects.between(0),
        "How many payments succeeded: list them by `GET /payments?payment_link_id=`. More than "
        "`max_payments` if customers paid at the same time: refund what you did not ask for.",
    ]
    open_codes: Annotated[int, objects.between(0), "How many codes customers can pay now."]
    expiry_minutes: Annotated[int, objects.between(1, MAX_EXPIRY), "Minutes until each code expires."]
    expires_at: objects.Instant
    deactivated_at: Annotated[objects.Instant | None, "Null unless you or the operator deactivated it."]
    created_at: objects.Instant


def payment_link_object(link: models.PaymentLink, open_codes: int, now: datetime) -> PaymentLinkObject:
    return {
        "payment_link_id": link.id,
        "url": link.url,
        "status": link.status_at(now),
        "amount": link.amount,
        "amount_display": None if link.amount is None else money.with_code(link.amount),
        "amount_min": link.amount_min,
        "amount_max": link.amount_max,
        "currency": money.CURRENCY,
        "description": link.description,
        "reference": link.reference,
        "metadata": link.metadata,
        "max_payments": link.max_payments,
        "payments": link.payments,
        "open_codes": open_codes,
        "expiry_minutes": link.expiry_minutes,
        "expires_at": iso(link.expires_at),
        "deactivated_at": iso_or_none(link.deactivated_at),
        "created_at": iso(link.created_at),
    }
