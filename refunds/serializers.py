from typing import Any

from rest_framework import serializers

from core.http import fields
from core.http.paging import PeriodPageQuery
from refunds.models import RefundReason, RefundStatus
from refunds.shapes import MAX_NOTE_LENGTH
from transfers.serializers import Payee

MAX_CLAIM_HOURS, DEFAULT_CLAIM_HOURS = 720, 168
MAX_AMOUNT = 2**63 - 1  # Satang. Any amount over the payment's is refused as `refund_amount_exceeded`.


class DestinationRequest(Payee):
    """The account that a refund goes to."""


class RefundRequest(serializers.Serializer[Any]):
    payment_id = fields.Text(
        min_length=1, max_length=64, is_shown=True, help_text="A payment that succeeded."
    )
    amount = fields.Amount(
        min_value=1,
        max_value=MAX_AMOUNT,
        required=False,
        help_text="Satang, in digits only, at least 1. If omitted, the remaining amount of the payment.",
    )
    reason = fields.Choice(RefundReason.values, required=False, help_text="For your books.")
    note = fields.Text(min_length=1, max_length=MAX_NOTE_LENGTH, required=False, help_text="For your books.")
    destination = DestinationRequest(
        required=False,
        help_text="The account to send it to. If omitted, it is the payer's account as the bank reported it, "
        "else the `client_bank_account` of the QR code, else the refund waits for one. Not for cards.",
    )
    metadata = fields.Metadata(required=False)


class RefundQuery(PeriodPageQuery):
    """Filters of the refund list."""

    status = fields.Choice(RefundStatus.values, required=False, help_text="Only this status.")
    payment_id = fields.Text(min_length=1, max_length=64, required=False, help_text="Only of this payment.")


class ClaimLinkRequest(serializers.Serializer[Any]):
    """How long the payer may name an account."""

    expires_in_hours = fields.Integer(
        unit="hours",
        min_value=1,
        max_value=MAX_CLAIM_HOURS,
        default=DEFAULT_CLAIM_HOURS,
        help_text="Hours until the link expires.",
    )
