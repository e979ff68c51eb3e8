from typing import Any

from rest_framework import serializers

from core import fields, response_fields
from testclock.models import MAX_SECONDS


class AdvanceRequest(serializers.Serializer[Any]):
    """How far to advance the time: exactly one of the two fields."""

    advance_seconds = fields.Integer(unit="seconds", min_value=1, max_value=MAX_SECONDS, required=False)
    advance_minutes = fields.Integer(unit="minutes", min_value=1, max_value=MAX_SECONDS // 60, required=False)


class ClockObject(serializers.Serializer[Any]):
    advanced_seconds = serializers.IntegerField(
        min_value=0, max_value=MAX_SECONDS, help_text="All advances since the last reset."
    )
    advanced_at = response_fields.instant(allow_null=True, help_text="The last advance, in real time.")


class MovedRows(serializers.Serializer[Any]):
    """How many rows were brought forward."""

    qr_codes = serializers.IntegerField(min_value=0, help_text="Open codes, also those that expired by it.")
    expired = serializers.IntegerField(min_value=0, help_text="Codes that expired by it.")
    card_payments = serializers.IntegerField(min_value=0)
    inquiries = serializers.IntegerField(min_value=0, help_text="Questions to the bank about codes.")
    transfers = serializers.IntegerField(min_value=0, help_text="Orders of refunds and withdrawals.")
    deliveries = serializers.IntegerField(min_value=0, help_text="Events that wait for another attempt.")
    bank_reports = serializers.IntegerField(min_value=0, help_text="Callbacks of the sandbox bank.")


class AdvancedClockObject(ClockObject):
    moved = MovedRows()


ADVANCE_REQUEST = AdvanceRequest()
