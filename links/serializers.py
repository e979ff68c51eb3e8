from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from core import clock, money, plain_text
from core.http import fields
from core.http.paging import PeriodPageQuery
from links.models import LONGEST_LIFE, MAX_DESCRIPTION_LENGTH, MAX_PAYMENTS
from payments.serializers import Reference
from qrcodes.models import MAX_EXPIRY
from qrcodes.serializers import DEFAULT_EXPIRY

LIMITS = ("amount_min", "amount_max")


class PaymentLinkRequest(serializers.Serializer[Any]):
    """What a customer shall pay: one amount, or the limits of an amount that the customer chooses."""

    amount = fields.Amount(
        required=False, help_text="Satang. Omit it, and give both limits, if the customer chooses."
    )
    amount_min = fields.Amount(required=False, help_text="Satang: the smallest amount to choose.")
    amount_max = fields.Amount(required=False, help_text="Satang: the largest amount to choose.")
    currency = fields.Choice([money.CURRENCY], default=money.CURRENCY, help_text="ISO 4217; only THB.")
    description = fields.Text(
        plain=plain_text.visible,
        max_length=MAX_DESCRIPTION_LENGTH,
        required=False,
        help_text="What it is for; the page shows it.",
    )
    reference = Reference(help_text="Your order or invoice number, of each payment.")
    metadata = fields.Metadata(required=False)
    max_payments = fields.Integer(
        min_value=1,
        max_value=MAX_PAYMENTS,
        default=1,
        allow_null=True,
        help_text="How often it can be paid. Null is any number.",
    )
    expires_at = fields.Instant(
        required=False, help_text="After now and within 366 days. The default is 366 days from now."
    )
    expiry_minutes = fields.Integer(
        unit="minutes",
        min_value=1,
        max_value=MAX_EXPIRY,
        default=DEFAULT_EXPIRY,
        help_text="Minutes until each code expires.",
    )

    def validate_expires_at(self, expires_at: datetime) -> datetime:
        now = clock.now()
        if not now < expires_at <= now + LONGEST_LIFE:
            raise serializers.ValidationError(_("must be after now, and within 366 days"))
        return expires_at

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Either the amount, or both limits in their order."""
        del attrs["currency"]
        missing = [name for name in LIMITS if name not in attrs]
        if ("amount" in attrs) == (len(missing) < 2):
            raise serializers.ValidationError({"amount": [_("is needed, or both limits in its place")]})
        if len(missing) == 1:
            raise serializers.ValidationError({missing[0]: [_("is needed with the other limit")]})
        if not missing and attrs["amount_min"] > attrs["amount_max"]:
            raise serializers.ValidationError({"amount_max": [_("must be at least the smallest amount")]})
        return attrs


class PaymentLinkQuery(PeriodPageQuery):
    """Filters of the list of payment links."""

    reference = Reference(min_length=1, help_text="The merchant's reference.")
