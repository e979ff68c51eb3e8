from typing import Any

from rest_framework import serializers

from core import answers, fields
from core.paging import PageQuery
from refunds.models import PendingReason, Reason, Status
from transfers.payees import Payee

LONGEST_NOTE = 255
MOST = 2**63 - 1
"""Satang: what is more than the payment is refused as such, however much it is."""


class DestinationRequest(Payee):
    """The account that a refund goes to."""


class RefundRequest(serializers.Serializer[Any]):
    """What goes back, of which payment, and why."""

    says_why = {"amount"}  # other bounds than a payment's

    payment_id = fields.Text(min_length=1, max_length=64, help_text="A payment that succeeded.")
    amount = fields.Integer(
        min_value=1,
        max_value=MOST,
        required=False,
        help_text="Satang, at least 1; all that is left of the payment if omitted.",
    )
    reason = fields.Choice(Reason.values, required=False, help_text="For your books.")
    note = fields.Text(min_length=1, max_length=LONGEST_NOTE, required=False, help_text="For your books.")
    destination = DestinationRequest(
        required=False,
        help_text="The account to send it to. If omitted it is the payer's by the bank's receipt, else the "
        "`client_bank_account` of the QR code, else the refund waits for one. Never for a card payment.",
    )
    metadata = fields.Metadata(
        required=False, help_text="Any JSON object; comes back in answers and webhooks."
    )


class RefundQuery(PageQuery):
    """Filters of the refund list."""

    status = fields.Choice(Status.values, required=False, help_text="Only this status.")
    payment_id = fields.Text(min_length=1, max_length=64, required=False, help_text="Only of this payment.")
    start_date = fields.QueryInstant(
        required=False, help_text="From this date (UTC) or instant on, inclusive."
    )
    end_date = fields.QueryInstant(
        end=True, required=False, help_text="Up to this date (UTC) or instant, inclusive."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return fields.ordered_dates(attrs)


class RefundObject(serializers.Serializer[Any]):
    refund_id = answers.public_id("ref_")
    payment_id = answers.public_id("pay_")
    transaction_id = answers.public_id("txn_", help_text="Its row in the transaction history.")
    amount = answers.satang(1, answers.LARGEST, "Satang, positive.")
    currency = answers.currency()
    status = serializers.ChoiceField(Status.choices)
    pending_reason = serializers.ChoiceField(
        PendingReason.choices, allow_null=True, help_text="What a pending refund waits for."
    )
    awaiting_approval = serializers.BooleanField(
        help_text="A pending refund waits until the operator approves it."
    )
    reason = serializers.ChoiceField(Reason.choices, allow_null=True)
    note = serializers.CharField(max_length=LONGEST_NOTE, allow_null=True)
    failure_code = serializers.CharField(
        max_length=40, allow_null=True, help_text="Why a failed refund failed."
    )
    metadata = answers.metadata(allow_null=True)
    created_at = answers.instant()
    updated_at = answers.instant()
    completed_at = answers.instant(allow_null=True)


class RefundList(answers.Page):
    """A page of refunds."""

    refunds = RefundObject(many=True)


REFUND_REQUEST, DESTINATION_REQUEST = RefundRequest(), DestinationRequest()
