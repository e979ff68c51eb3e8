import re
from typing import Any

from rest_framework import serializers

from core import answers, fields, money
from core.paging import PageQuery
from payments import card_numbers
from payments.models import Status

_TOKEN = re.compile("[0-9A-Za-z_-]{1,128}")


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


class TokenId(fields.Text):
    """A token for a card. What looks like the number of a card itself is refused, and repeated nowhere."""

    default_error_messages = {"token": "Give the token that the acquirer made for the card."}

    def to_internal_value(self, data: Any) -> str:
        token = super().to_internal_value(data)
        if not _TOKEN.fullmatch(token) or card_numbers.looks_like_one(token):
            self.fail("token")
        return token


class PaymentRequest(serializers.Serializer[Any]):
    """A payment by card."""

    token_id = TokenId(help_text="What the acquirer made of the card in the customer's browser.")
    amount = fields.Integer(
        min_value=money.MIN_AMOUNT, max_value=money.MAX_AMOUNT, help_text="Satang: 150000 is 1,500.00 THB."
    )
    currency = fields.Choice([money.CURRENCY], help_text="ISO 4217; only THB.")
    description = fields.Text(max_length=255, required=False, help_text="Comes back in answers.")
    reference = fields.Text(max_length=35, required=False, help_text="Your order or invoice number.")
    metadata = fields.Metadata(
        required=False, help_text="Any JSON object; comes back in answers and webhooks."
    )


class Card(serializers.Serializer[Any]):
    last4 = answers.Shaped({"pattern": "^[0-9]{4}$"})
    brand = serializers.CharField(max_length=20, help_text="Lower case: visa, mastercard, jcb, ...")


class PaymentExceptionObject(serializers.Serializer[Any]):
    """Money that came for a payment and did not fit. Staff decide about it."""

    reason = serializers.ChoiceField(
        ["duplicate", "amount_mismatch", "late"], help_text="Paid twice, wrong amount, paid after expiry."
    )
    amount = answers.satang(1, answers.LARGEST, "Satang that came in.")
    status = serializers.ChoiceField(
        ["open", "accepted", "attached", "sending_back", "sent_back", "taken_back", "merged"],
        help_text="`open` waits for staff; `attached` paid for another payment; `taken_back` by the bank; "
        "`merged`: the same money as another report.",
    )
    at = answers.instant(help_text="When the bank reported it.")


class _Additions(serializers.Serializer[Any]):
    metadata = answers.metadata(allow_null=True)
    amount_received = answers.satang(
        1, answers.LARGEST, "Satang that came in, where staff accepted another amount.", allow_null=True
    )
    amount_refunded = answers.satang(0, answers.LARGEST, "Satang that went back to the payer.")
    failure_code = serializers.CharField(
        max_length=40, allow_null=True, help_text="Why a failed payment failed."
    )
    expires_at = answers.instant(allow_null=True, help_text="Null where nothing expires.")
    authorize_uri = serializers.URLField(
        max_length=1000,
        allow_null=True,
        help_text="The page where the payer authorises the charge (3-D Secure); else null.",
    )
    exceptions = PaymentExceptionObject(
        many=True, help_text="Money that came and did not fit, the oldest first; empty for most."
    )


class QrPaymentObject(_Additions):
    """A payment as `/Thai/v1/payments` shows it."""

    payment_id = answers.public_id("pay_")
    qr_code_id = answers.public_id("qr_", allow_null=True)
    status = serializers.ChoiceField(Status.choices)
    amount = answers.satang()
    currency = answers.currency()
    reference = serializers.CharField(max_length=35, allow_null=True)
    created_at = answers.instant()
    completed_at = answers.instant(allow_null=True, help_text="The bank's payment time.")


class CardPaymentObject(_Additions):
    """A payment as `/v1/payments` shows it."""

    payment_id = answers.public_id("pay_")
    status = serializers.ChoiceField(Status.choices)
    amount = answers.satang()
    currency = answers.currency()
    description = serializers.CharField(max_length=255, allow_null=True)
    created_at = answers.instant()
    updated_at = answers.instant()
    card = Card(allow_null=True, help_text="Null for QR payments.")


class QrPaymentList(answers.Page):
    """A page of payments as `/Thai/v1/payments` shows it."""

    payments = QrPaymentObject(many=True)


class CardPaymentList(answers.Page):
    """A page of payments as `/v1/payments` shows it."""

    payments = CardPaymentObject(many=True)


class PaymentEventData(serializers.Serializer[Any]):
    """A payment at the moment of an event."""

    payment_id = answers.public_id("pay_")
    status = serializers.ChoiceField(Status.choices)
    amount = answers.satang()
    currency = answers.currency()
    qr_code_id = answers.public_id("qr_", allow_null=True)
    reference = serializers.CharField(max_length=35, allow_null=True)
    metadata = answers.metadata(allow_null=True)
    failure_code = serializers.CharField(max_length=40, allow_null=True)
