import re
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core import money, plain_text
from core.http import fields
from core.http.objects import MAX_SATANG
from core.http.paging import PeriodPageQuery
from payments.models import PaymentStatus

_TOKEN = re.compile("[0-9A-Za-z_-]{1,128}")


class Reference(fields.Text):
    """The merchant's own reference. It need not be given."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(plain=plain_text.visible, max_length=35, required=False, **kwargs)


class StatusQuery(PeriodPageQuery):
    """Filters of the list of QR codes, and of that of payments."""

    status = fields.Choice(PaymentStatus.values, required=False, help_text="Only those with this status now.")
    reference = Reference(min_length=1, help_text="The merchant's reference.")


class PaymentQuery(StatusQuery):
    """Filters of the payment list."""

    qr_code_id = fields.Text(
        min_length=1, max_length=64, required=False, help_text="The QR code of the payment."
    )
    settlement_id = fields.Text(
        min_length=1, max_length=64, required=False, help_text="Only card payments that this settlement pays."
    )
    payment_link_id = fields.Text(
        min_length=1, max_length=64, required=False, help_text="Only payments of this payment link."
    )
    bank_reference = fields.Text(
        plain=plain_text.visible,
        min_length=1,
        max_length=64,
        required=False,
        help_text="The bank's id of the payer's transfer.",
    )
    amount = fields.QueryInteger(
        min_value=1, max_value=MAX_SATANG, required=False, help_text="Satang asked for."
    )
    hold = fields.Choice(["true", "false"], required=False, help_text="Only those that are held, or are not.")
    metadata = fields.QueryMetadata(
        required=False, help_text="Values of your metadata, as text: `metadata[table]=4`. At most 5."
    )


@extend_schema_field({"type": "string", "pattern": "^[0-9A-Za-z_-]{1,128}$"})
class TokenId(fields.Text):
    """A card token. A text that looks like a card number is refused and never repeated."""

    default_error_messages = {"token": "must be the token that the acquirer made for the card"}

    def to_internal_value(self, data: Any) -> str:
        token = super().to_internal_value(data)
        if not _TOKEN.fullmatch(token) or looks_like_card_number(token):
            self.fail("token")
        return token


class PaymentRequest(serializers.Serializer[Any]):
    """A payment by card."""

    token_id = TokenId(help_text="The card token that the acquirer created in the customer's browser.")
    amount = fields.Amount()
    currency = fields.Choice([money.CURRENCY], help_text="ISO 4217; only THB.")
    description = fields.Text(max_length=255, required=False, help_text="Returned in responses.")
    reference = Reference(help_text="Your order or invoice number.")
    metadata = fields.Metadata(required=False)


_CARD_DIGITS = re.compile("[0-9]{13,19}")


def looks_like_card_number(text: str) -> bool:
    """Whether `text` is 13 to 19 digits, perhaps with separators, with a valid check digit (Luhn)."""
    digits = text.replace("-", "").replace("_", "")
    if not _CARD_DIGITS.fullmatch(digits):
        return False
    doubled = (2 * int(digit) for digit in digits[-2::-2])
    total = sum(int(digit) for digit in digits[::-2]) + sum(each // 10 + each % 10 for each in doubled)
    return total % 10 == 0
