from typing import Any

from rest_framework import serializers

from core import fields
from core.paging import PageQuery
from payments.models import Status


class PaymentQuery(PageQuery):
    """Filters of the payment list."""

    status = fields.Choice(Status.values, required=False, help_text="Only this status, as it is now.")
    reference = fields.Text(
        min_length=1, max_length=35, required=False, help_text="The merchant's reference."
    )
    qr_code_id = fields.Text(
        min_length=1, max_length=64, required=False, help_text="The code it was born with."
    )
    start_date = fields.QueryInstant(
        required=False, help_text="Created on or after this date (UTC) or instant."
    )
    end_date = fields.QueryInstant(
        end=True, required=False, help_text="Created on or before this date (UTC) or instant."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return fields.ordered_dates(attrs)


class Card(serializers.Serializer[Any]):
    last4 = serializers.CharField()
    brand = serializers.CharField()


class _Additions(serializers.Serializer[Any]):
    metadata = serializers.DictField(allow_null=True)
    amount_refunded = serializers.IntegerField(help_text="Satang that went back to the payer.")
    failure_code = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)


class QrPaymentObject(_Additions):
    """A payment as `/Thai/v1/payments` shows it."""

    payment_id = serializers.CharField()
    qr_code_id = serializers.CharField(allow_null=True)
    status = serializers.ChoiceField(Status.choices)
    amount = serializers.IntegerField(help_text="Satang.")
    currency = serializers.CharField()
    reference = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    completed_at = serializers.DateTimeField(allow_null=True, help_text="The bank's payment time.")


class CardPaymentObject(_Additions):
    """A payment as `/v1/payments` shows it."""

    payment_id = serializers.CharField()
    status = serializers.ChoiceField(Status.choices)
    amount = serializers.IntegerField(help_text="Satang.")
    currency = serializers.CharField()
    description = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    card = Card(allow_null=True, help_text="Null for QR payments.")
