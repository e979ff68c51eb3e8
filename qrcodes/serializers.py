from typing import Any

from rest_framework import serializers

from core import money, plain_text
from core.http import fields
from payments.serializers import Reference
from qrcodes import qr_cards
from qrcodes.models import MAX_EXPIRY
from qrcodes.shapes import MAX_CLIENT_LENGTH

DEFAULT_EXPIRY = 15
IMAGE_FORMATS = ["png", "svg"]


class QrCodeRequest(serializers.Serializer[Any]):
    """What the customer shall pay, and what you know about the customer."""

    amount = fields.Amount()
    currency = fields.Choice([money.CURRENCY], help_text="ISO 4217; only THB.")
    client_name = fields.Text(
        plain=plain_text.name,
        max_length=MAX_CLIENT_LENGTH,
        required=False,
        help_text="The customer's full name.",
    )
    client_bank_name = fields.Text(
        plain=plain_text.name, max_length=MAX_CLIENT_LENGTH, required=False, help_text="The customer's bank."
    )
    client_bank_account = fields.Text(
        plain=plain_text.visible,
        max_length=MAX_CLIENT_LENGTH,
        required=False,
        help_text="The customer's account. Taken from the bank transaction if omitted.",
    )
    reference = Reference(help_text="Your order or invoice number.")
    expiry_minutes = fields.Integer(
        unit="minutes",
        min_value=1,
        max_value=MAX_EXPIRY,
        default=DEFAULT_EXPIRY,
        help_text="Minutes until it expires.",
    )
    metadata = fields.Metadata(required=False)


class ImageQuery(serializers.Serializer[Any]):
    """Parameters of the picture, for the API document. The view reads them itself."""

    format = fields.Choice(IMAGE_FORMATS, required=False, help_text="Takes precedence over `Accept`.")


class CardQuery(serializers.Serializer[Any]):
    """Parameters of the card."""

    format = fields.Choice(
        list(qr_cards.FORMATS), default=qr_cards.PNG, help_text="`pdf` is one page of outlines, with a bleed."
    )
    size = fields.QueryInteger(
        min_value=qr_cards.MIN_SIZE,
        max_value=qr_cards.MAX_SIZE,
        default=qr_cards.DEFAULT_SIZE,
        help_text="Width in pixels. A PDF has 300 of them an inch: 1240 is A6.",
    )
    lang = fields.Choice(qr_cards.LANGUAGES, default="th", help_text="The language of its texts.")
