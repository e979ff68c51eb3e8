from datetime import datetime
from typing import Any

from django.conf import settings

from core import money, vault
from core.clock import iso
from payments.models import Payment
from qrcodes.models import QrCode


def qr_code_object(qr_code: QrCode, now: datetime) -> dict[str, Any]:
    """The QR code object. Fields without a value are absent."""
    payment = qr_code.payment
    return {
        "qr_code_id": qr_code.id,
        "qr_data": qr_code.qr_data,
        "qr_image_url": f"{settings.BASE_URL}/Thai/qr-codes/{qr_code.id}/image",
        "payment_page_url": f"{settings.BASE_URL}/pay/{qr_code.id}",
        "amount": payment.amount,
        "amount_display": money.display(payment.amount),
        "currency": payment.currency,
        "expires_at": iso(payment.expires_at),  # type: ignore[arg-type]
        "payment_id": payment.id,
        "status": payment.status_at(now),
        **{name: value for name, value in _optional(payment).items() if value is not None},
    }


def _optional(payment: Payment) -> dict[str, Any]:
    """Return the optional fields. If the merchant gave no payer, use the payer that the bank reported."""
    return {
        "reference": payment.reference,
        "client_name": payment.client_name or payment.payer_name,
        "client_bank_name": payment.client_bank_name or payment.payer_bank_name,
        "client_bank_account": payment.client_bank_account or vault.masked(payment.payer_account),
        "metadata": payment.metadata,
    }
