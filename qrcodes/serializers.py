from typing import Any

from rest_framework import serializers

from core import fields, money, plain_text, response_fields
from core.paging import PeriodPageQuery
from payments.models import PaymentStatus
from qrcodes import qr_cards

DEFAULT_EXPIRY = 15
MAX_EXPIRY = 1440
MAX_CLIENT_LENGTH = 140
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
    reference = fields.Text(
        plain=plain_text.visible, max_length=35, required=False, help_text="Your order or invoice number."
    )
    expiry_minutes = fields.Integer(
        unit="minutes",
        min_value=1,
        max_value=MAX_EXPIRY,
        default=DEFAULT_EXPIRY,
        help_text="Minutes until it expires.",
    )
    metadata = fields.Metadata(required=False)


class QrCodeQuery(PeriodPageQuery):
    """Filters of the list of QR codes."""

    status = fields.Choice(PaymentStatus.values, required=False, help_text="Only codes with this status now.")
    reference = fields.Text(
        plain=plain_text.visible,
        min_length=1,
        max_length=35,
        required=False,
        help_text="The merchant's reference.",
    )


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


class QrCodeObject(serializers.Serializer[Any]):
    qr_code_id = response_fields.public_id("qr_")
    qr_data = response_fields.PatternField(
        {"pattern": "^0002[ -~]+$", "maxLength": 512}, help_text="The payload; any QR library can draw it."
    )
    qr_image_url = response_fields.PatternField(
        {"format": "uri"}, help_text="A picture of the code, PNG or (with ?format=svg) SVG."
    )
    payment_page_url = response_fields.PatternField(
        {"format": "uri"},
        help_text="A page for the customer, in Thai and English: the code, and what became of the payment.",
    )
    amount = response_fields.satang()
    amount_display = response_fields.amount_display()
    currency = response_fields.currency()
    expires_at = response_fields.instant()
    payment_id = response_fields.public_id("pay_")
    status = serializers.ChoiceField(PaymentStatus.choices)
    reference = serializers.CharField(max_length=35, required=False)
    client_name = serializers.CharField(max_length=MAX_CLIENT_LENGTH, required=False)
    client_bank_name = serializers.CharField(max_length=MAX_CLIENT_LENGTH, required=False)
    client_bank_account = serializers.CharField(max_length=MAX_CLIENT_LENGTH, required=False)
    metadata = response_fields.metadata(required=False)


class QrCodeList(response_fields.CursorPage):
    """A page of QR codes."""

    qr_codes = QrCodeObject(many=True)
    searched_to = response_fields.public_id(
        "pay_",
        required=False,
        help_text="Only if older payments of the period, by card too, were not read: continue with "
        "this id as `after` (or as `before`). `total` counts from the cursor until here.",
    )


QR_CODE_REQUEST = QrCodeRequest()
