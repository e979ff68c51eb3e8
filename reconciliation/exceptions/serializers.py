"""The API by which merchants read and decide about the exceptions of their payments."""

from typing import Any

from rest_framework import serializers

from core.http import fields


class DecisionRequest(serializers.Serializer[Any]):
    """A decision about an exception."""

    note = fields.Text(
        min_length=1, max_length=255, required=False, help_text="Your reason, for the records."
    )


class ReturnRequest(DecisionRequest):
    """A return of the money of an exception."""

    part = fields.Choice(
        ["all", "excess"],
        default="all",
        help_text="`all`: the payment gets nothing. `excess`: an over-payment pays its payment with the "
        "payment's amount, and the rest goes back.",
    )
