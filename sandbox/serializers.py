from typing import Any

from rest_framework import serializers

from core import answers, clock, fields


class Instant(fields.QueryInstant):
    """An ISO 8601 time with its offset, as a JSON string."""

    default_error_messages = {"date": "Use a time with offset (2026-11-21T10:00:00Z)."}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or "T" not in data:
            self.fail("date")
        return clock.to_millisecond(super().to_internal_value(data))


class SandboxPaymentRequest(serializers.Serializer[Any]):
    qr_data = fields.Text()
    scenario = fields.Text(default="paid")
    paid_at = Instant(required=False)
    report_at = Instant(required=False)


class SandboxPaymentObject(serializers.Serializer[Any]):
    bank_transaction_id = answers.public_id("sbp_")
    scenario = serializers.CharField()
    accepted = serializers.BooleanField()
