from typing import Any

from rest_framework import serializers

from core import fields, money, plain_text, response_fields
from core.paging import PeriodPageQuery
from transfers.serializers import MAX_NAME_LENGTH, Payee
from withdrawals.models import WithdrawalPendingReason, WithdrawalStatus

MAX_REFERENCE_LENGTH = 35


class _AmountFields(serializers.Serializer[Any]):
    """A separate base class, because errors name the first invalid field in the order of the bases."""

    amount = fields.Amount()
    currency = fields.Choice([money.CURRENCY], help_text="ISO 4217; only THB.")


class WithdrawalRequest(_AmountFields, Payee):
    """What to send, and the account that it goes to."""

    reference = fields.Text(
        plain=plain_text.visible,
        max_length=MAX_REFERENCE_LENGTH,
        required=False,
        help_text="Your own reference of the withdrawal.",
    )
    metadata = fields.Metadata(required=False)


class WithdrawalQuery(PeriodPageQuery):
    """Filters of the list of withdrawals."""

    status = fields.Choice(WithdrawalStatus.values, required=False, help_text="Only this status.")
    reference = fields.Text(
        plain=plain_text.visible,
        min_length=1,
        max_length=MAX_REFERENCE_LENGTH,
        required=False,
        help_text="The merchant's reference.",
    )


class WithdrawalObject(serializers.Serializer[Any]):
    withdrawal_id = response_fields.public_id("wd_")
    status = serializers.ChoiceField(WithdrawalStatus.choices)
    awaiting_approval = serializers.BooleanField(
        help_text="A pending withdrawal waits until the operator approves it."
    )
    pending_reason = serializers.ChoiceField(
        WithdrawalPendingReason.choices,
        allow_null=True,
        help_text="`negative_balance`: a bank reversed money, and nothing is sent until the debt is paid.",
    )
    amount = response_fields.satang()
    amount_display = response_fields.amount_display()
    currency = response_fields.currency()
    bank_code = response_fields.PatternField({"pattern": "^[0-9]{3}$"}, help_text="The bank's 3-digit code.")
    bank_name = serializers.CharField(max_length=100)
    bank_account = response_fields.PatternField({"pattern": "^[0-9]{4}$"}, help_text="The last 4 digits.")
    account_name = serializers.CharField(max_length=MAX_NAME_LENGTH)
    reference = serializers.CharField(max_length=MAX_REFERENCE_LENGTH, allow_null=True)
    failure_code = serializers.CharField(
        max_length=40, allow_null=True, help_text="Why a failed withdrawal failed."
    )
    bank_reference = serializers.CharField(max_length=64, allow_null=True, help_text="The bank's own id.")
    metadata = response_fields.metadata(allow_null=True)
    created_at = response_fields.instant()
    updated_at = response_fields.instant()
    completed_at = response_fields.instant(
        allow_null=True, help_text="When the money arrived; kept if the bank returned it."
    )


class WithdrawalList(response_fields.CursorPage):
    """A page of withdrawals."""

    withdrawals = WithdrawalObject(many=True)
