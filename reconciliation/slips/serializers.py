from typing import Any

from rest_framework import serializers

from core.http import fields


class SlipRequest(serializers.Serializer[Any]):
    """A slip, and what the merchant expects."""

    qr_data = fields.Text(
        max_length=512, required=False, help_text="The text of the slip's mini-QR. Or send a `picture`."
    )
    payment_id = fields.Text(
        min_length=1,
        max_length=64,
        required=False,
        is_shown=True,
        help_text="Your payment that the slip was shown for.",
    )
    amount = fields.Amount(required=False, help_text="Satang that the slip should be of, in digits only.")
