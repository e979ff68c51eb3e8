from typing import Any

from rest_framework import serializers

from core import answers, fields, money
from core.paging import PageQuery
from transfers.payees import LONGEST_NAME, Payee
from withdrawals.models import PendingReason, Status

LONGEST_REFERENCE = 35


class _Sum(serializers.Serializer[Any]):
    """How much. A base of its own, because fields at fault are named in the order of the bases."""

    amount = fields.Integer(
        min_value=money.MIN_AMOUNT, max_value=money.MAX_AMOUNT, help_text="Satang: 150000 is 1,500.00 THB."
    )
    currency = fields.Choice([money.CURRENCY], help_text="ISO 4217; only THB.")


class WithdrawalRequest(_Sum, Payee):
    """How much is to be sent, and where."""

    reference = fields.Text(max_length=LONGEST_REFERENCE, required=False, help_text="Your own number for it.")
    metadata = fields.Metadata(
        required=False, help_text="Any JSON object; comes back in answers and webhooks."
    )


class WithdrawalQuery(PageQuery):
    """Filters of the list of withdrawals."""

    status = fields.Choice(Status.values, required=False, help_text="Only this status.")
    reference = fields.Text(
        min_length=1, max_length=LONGEST_REFERENCE, required=False, help_text="The merchant's reference."
    )
    start_date = fields.QueryInstant(
        required=False, help_text="Created on or after this date (UTC) or instant."
    )
    end_date = fields.QueryInstant(
        end=True, required=False, help_text="Created on or before this date (UTC) or instant."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return fields.ordered_dates(attrs)


class WithdrawalObject(serializers.Serializer[Any]):
    withdrawal_id = answers.public_id("wd_")
    status = serializers.ChoiceField(Status.choices)
    awaiting_approval = serializers.BooleanField(
        help_text="A pending withdrawal waits until the operator approves it."
    )
    pending_reason = serializers.ChoiceField(
        PendingReason.choices,
        allow_null=True,
        help_text="`negative_balance`: a bank took money back, and nothing is sent until the debt is paid.",
    )
    amount = answers.satang()
    currency = answers.currency()
    bank_code = answers.Shaped({"pattern": "^[0-9]{3}$"}, help_text="The bank's 3-digit code.")
    bank_name = serializers.CharField(max_length=100)
    bank_account = answers.Shaped({"pattern": "^[0-9]{4}$"}, help_text="The last 4 digits.")
    account_name = serializers.CharField(max_length=LONGEST_NAME)
    reference = serializers.CharField(max_length=LONGEST_REFERENCE, allow_null=True)
    failure_code = serializers.CharField(
        max_length=40, allow_null=True, help_text="Why a failed withdrawal failed."
    )
    bank_reference = serializers.CharField(
        max_length=64, allow_null=True, help_text="By which the bank knows it."
    )
    metadata = answers.metadata(allow_null=True)
    created_at = answers.instant()
    updated_at = answers.instant()
    completed_at = answers.instant(
        allow_null=True, help_text="When the money arrived; it stays if the money came back."
    )


class WithdrawalList(answers.Page):
    """A page of withdrawals."""

    withdrawals = WithdrawalObject(many=True)
