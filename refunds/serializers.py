from typing import Any

from rest_framework import serializers

from core import fields, response_fields
from core.paging import PeriodPageQuery
from refunds.models import (
    MAX_CLAIM_TRIES,
    ClaimLinkStatus,
    RefundPendingReason,
    RefundReason,
    RefundStatus,
)
from transfers.serializers import Payee

MAX_NOTE_LENGTH = 255
MAX_CLAIM_HOURS, DEFAULT_CLAIM_HOURS = 720, 168
MAX_AMOUNT = 2**63 - 1
"""Satang. Any amount over the payment's is refused as `refund_amount_exceeded`."""


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


class RefundObject(serializers.Serializer[Any]):
    refund_id = response_fields.public_id("ref_")
    payment_id = response_fields.public_id("pay_")
    transaction_id = response_fields.public_id("txn_", help_text="Its transaction in the history.")
    amount = response_fields.satang(1, response_fields.MAX_SATANG, "Satang, positive.")
    amount_display = response_fields.amount_display()
    currency = response_fields.currency()
    status = serializers.ChoiceField(RefundStatus.choices)
    pending_reason = serializers.ChoiceField(
        RefundPendingReason.choices, allow_null=True, help_text="What a pending refund waits for."
    )
    awaiting_approval = serializers.BooleanField(
        help_text="A pending refund waits until the operator approves it."
    )
    reason = serializers.ChoiceField(RefundReason.choices, allow_null=True)
    note = serializers.CharField(max_length=MAX_NOTE_LENGTH, allow_null=True)
    failure_code = serializers.CharField(
        max_length=40, allow_null=True, help_text="Why a failed refund failed."
    )
    metadata = response_fields.metadata(allow_null=True)
    created_at = response_fields.instant()
    updated_at = response_fields.instant()
    completed_at = response_fields.instant(allow_null=True)


class ClaimLinkRequest(serializers.Serializer[Any]):
    """How long the payer may name an account."""

    expires_in_hours = fields.Integer(
        unit="hours",
        min_value=1,
        max_value=MAX_CLAIM_HOURS,
        default=DEFAULT_CLAIM_HOURS,
        help_text="Hours until the link expires.",
    )


class ClaimLinkObject(serializers.Serializer[Any]):
    """The link of a refund, without its secret."""

    refund_id = response_fields.public_id("ref_")
    status = serializers.ChoiceField(ClaimLinkStatus.choices)
    tries_left = serializers.IntegerField(
        min_value=0, max_value=MAX_CLAIM_TRIES, help_text="Proofs that the payer may still give."
    )
    created_at = response_fields.instant()
    expires_at = response_fields.instant()
    used_at = response_fields.instant(allow_null=True)
    revoked_at = response_fields.instant(allow_null=True)


class ClaimLinkSecret(ClaimLinkObject):
    """The link of a refund, and its address."""

    claim_url = response_fields.PatternField({"format": "uri"}, help_text="Send it to the payer only.")


class RefundList(response_fields.CursorPage):
    """A page of refunds."""

    refunds = RefundObject(many=True)


REFUND_REQUEST, DESTINATION_REQUEST = RefundRequest(), DestinationRequest()
CLAIM_LINK_REQUEST = ClaimLinkRequest()
