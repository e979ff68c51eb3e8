from datetime import datetime
from typing import Annotated, NotRequired, TypedDict

from django.conf import settings

from core import money, vault
from core.clock import iso
from core.http import objects
from payments.models import PaymentStatus
from qrcodes.models import QrCode

MAX_CLIENT_LENGTH = 140


class QrCodeObject(TypedDict):
    qr_code_id: objects.QrCodeId
    qr_data: Annotated[
        str, {"pattern": "^0002[ -~]+$", "maxLength": 512}, "The payload; any QR library can draw it."
    ]
    qr_image_url: Annotated[str, objects.URI, "A picture of the code, PNG or (with ?format=svg) SVG."]
    payment_page_url: Annotated[
        str,
        objects.URI,
        "A page for the customer, in Thai and English: the code, and what became of the payment.",
    ]
    amount: objects.Amount
    amount_display: objects.AmountDisplay
    currency: objects.Currency
    expires_at: objects.Instant
    payment_id: objects.PaymentId
    status: Annotated[str, objects.one_of(PaymentStatus)]
    reference: NotRequired[Annotated[str, objects.up_to(35)]]
    client_name: NotRequired[Annotated[str, objects.up_to(MAX_CLIENT_LENGTH)]]
    client_bank_name: NotRequired[Annotated[str, objects.up_to(MAX_CLIENT_LENGTH)]]
    client_bank_account: NotRequired[Annotated[str, objects.up_to(MAX_CLIENT_LENGTH)]]
    metadata: NotRequired[objects.Metadata]


def qr_code_object(qr_code: QrCode, now: datetime) -> QrCodeObject:
    """The object, without fields that have no value. The payer is the bank's if the merchant gave none."""
    payment = qr_code.payment
    found: QrCodeObject = {
        "qr_code_id": qr_code.id,
        "qr_data": qr_code.qr_data,
        "qr_image_url": f"{settings.BASE_URL}/Thai/qr-codes/{qr_code.id}/image",
        "payment_page_url": f"{settings.BASE_URL}/pay/{qr_code.id}",
        "amount": payment.amount,
        "amount_display": money.with_code(payment.amount),
        "currency": payment.currency,
        "expires_at": iso(payment.expires_at),  # type: ignore[arg-type]
        "payment_id": payment.id,
        "status": payment.status_at(now),
    }
    if payment.reference is not None:
        found["reference"] = payment.reference
    if (name := payment.client_name or payment.payer_name) is not None:
        found["client_name"] = name
    if (bank := payment.client_bank_name or payment.payer_bank_name) is not None:
        found["client_bank_name"] = bank
    if (account := payment.client_bank_account or vault.masked(payment.payer_account)) is not None:
        found["client_bank_account"] = account
    if payment.metadata is not None:
        found["metadata"] = payment.metadata
    return found
