import re
from typing import Any

from drf_spectacular.drainage import set_override
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core import dates
from core.http import fields
from sandbox.scenarios import SCENARIOS
from sandbox.statements import FORMATS

BILLER_ID = "[0-9]{13}|[0-9]{15}"


class PatternField(fields.Text):
    """Text that matches a pattern as a whole."""

    default_error_messages = {"shape": "must match {pattern}"}

    def __init__(self, pattern: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pattern = pattern
        set_override(self, "field", {"type": "string", "pattern": f"^({pattern})$"})

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not re.fullmatch(self.pattern, text):
            self.fail("shape", pattern=self.pattern)
        return text


@extend_schema_field({"type": "string", "format": "date"})
class DateField(fields.Text):
    """A date as text."""

    default_error_messages = {
        "date": "must be a date (2026-11-21)",
        "buddhist": "must be in the Gregorian calendar: {reason}",
    }

    def to_internal_value(self, data: Any) -> Any:
        try:
            return dates.day(super().to_internal_value(data))
        except dates.BuddhistYear as reason:
            self.fail("buddhist", reason=reason)
        except ValueError:
            self.fail("date")


class SandboxPaymentRequest(serializers.Serializer[Any]):
    qr_data = fields.Text()
    scenario = fields.Choice(list(SCENARIOS), default="paid")
    paid_at = fields.Instant(
        required=False,
        help_text="The bank's time of the payment, within a year of now. The default is now, and for `late` "
        "24 hours and 1 minute from now, which is after the expiry of every code.",
    )
    report_at = fields.Instant(
        required=False,
        help_text="When the bank reports the payment, within a year of now. The default is now, and for "
        "`reported_late` 24 hours and 1 minute from now.",
    )


class EntriesQuery(serializers.Serializer[Any]):
    """A code, and a range of the bank's times."""

    biller_id = PatternField(BILLER_ID)
    reference1 = PatternField("[ -~]{1,35}")
    since = fields.Instant(help_text="The earliest bank's time, inclusive.")
    until = fields.Instant(help_text="The latest bank's time, inclusive.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["since"] > attrs["until"]:
            raise serializers.ValidationError({"since": ["must not be after until"]})
        return attrs


class SlipQuery(serializers.Serializer[Any]):
    """The data in the mini-QR of a slip."""

    sending_bank = PatternField("[0-9]{3}", help_text="The payer's bank.")
    reference = PatternField("[A-Za-z0-9]{1,25}", help_text="That bank's id of the transfer.")


class StatementFormatQuery(serializers.Serializer[Any]):
    """The format of the file."""

    format = fields.Choice(list(FORMATS), default="bot", help_text="The banks' own format, or CSV.")


class StatementQuery(StatementFormatQuery):
    """A biller id, and a day in Bangkok."""

    biller_id = PatternField(BILLER_ID)
    date = DateField()
