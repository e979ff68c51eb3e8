import re
from typing import Any

from rest_framework import serializers

from core import fields, money, plain_text, response_fields
from core.paging import PeriodPageQuery
from payments.models import PaymentStatus
from payments.shapes import UNMATCHED_MONEY

_TOKEN = re.compile("[0-9A-Za-z_-]{1,128}")


class PaymentQuery(PeriodPageQuery):
    """Filters of the payment list."""

    status = fields.Choice(
        PaymentStatus.values, required=False, help_text="Only payments with this status now."
    )
    reference = fields.Text(
        plain=plain_text.visible,
        min_length=1,
        max_length=35,
        required=False,
        help_text="The merchant's reference.",
    )
    qr_code_id = fields.Text(
        min_length=1, max_length=64, required=False, help_text="The QR code of the payment."
    )

    bank_transaction_id = fields.Text(
        plain=plain_text.visible,
        min_length=1,
        max_length=64,
        required=False,
        help_text="The bank's id of the payer's transfer.",
    )
    amount = fields.QueryInteger(
        min_value=1, max_value=response_fields.MAX_SATANG, required=False, help_text="Satang asked for."
    )
    metadata = fields.QueryMetadata(
        required=False, help_text="Values of your metadata, as text: `metadata[table]=4`. At most 5."
    )


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
    reference = fields.Text(
        plain=plain_text.visible, max_length=35, required=False, help_text="Your order or invoice number."
    )
    metadata = fields.Metadata(required=False)


class Card(serializers.Serializer[Any]):
    last4 = response_fields.PatternField({"pattern": "^[0-9]{4}$"})
    brand = serializers.CharField(max_length=20, help_text="Lower case: visa, mastercard, jcb, ...")


class PaymentExceptionObject(serializers.Serializer[Any]):
    """Money that came for a payment and did not fit. The merchant or the operator decides about it."""

    exception_id = response_fields.public_id("rcp_")
    reason = serializers.ChoiceField(
        ["duplicate", "time_mismatch", "amount_mismatch", "late"],
        help_text="Paid twice, paid before the code existed, wrong amount, paid after expiry.",
    )
    amount = response_fields.satang(1, response_fields.MAX_SATANG, "Satang received.")
    amount_display = response_fields.amount_display()
    status = serializers.ChoiceField(
        [
            *("open", "accepted", "attached", "sending_back", "sent_back", "taken_back", "merged"),
            *("excess_open", "excess_sending_back", "excess_sent_back", "excess_taken_back"),
        ],
        help_text="`open` waits for a decision; `attached` paid for another payment; `taken_back` by the "
        "bank; `merged`: the same money as another report; `excess_...`: the payment received its amount, "
        "and this happens to the rest.",
    )
    at = response_fields.instant(help_text="When the bank reported it.")


class UnmatchedMoney(serializers.Serializer[Any]):
    """Money that may be for a payment: its amount and time fit, its reference is unknown."""

    exception_id = response_fields.public_id("rcp_", help_text="Name it to the operator, who decides.")
    message = response_fields.PatternField({"examples": [UNMATCHED_MONEY]}, help_text="For people.")
    at = response_fields.instant(help_text="When the bank reported it.")


class Payer(serializers.Serializer[Any]):
    """Who paid, as the bank reported it."""

    name = serializers.CharField(max_length=140, allow_null=True)
    bank_code = serializers.CharField(max_length=3, allow_null=True, help_text="See `GET /banks`.")
    bank_name = serializers.CharField(max_length=140, allow_null=True)
    bank_account = serializers.CharField(
        max_length=64, allow_null=True, help_text="Only the last four digits are readable."
    )


class RefundSummary(serializers.Serializer[Any]):
    """Satang of the refunds of a payment."""

    completed = response_fields.satang(0, response_fields.MAX_SATANG, "Satang that went back.")
    pending = response_fields.satang(0, response_fields.MAX_SATANG, "Satang of refunds in progress.")
    remaining = response_fields.satang(0, response_fields.MAX_SATANG, "Satang that can still be refunded.")


class PaymentObject(serializers.Serializer[Any]):
    """A payment by QR code or by card."""

    payment_id = response_fields.public_id("pay_")
    qr_code_id = response_fields.public_id("qr_", allow_null=True, help_text="Null for card payments.")
    status = serializers.ChoiceField(PaymentStatus.choices)
    amount = response_fields.satang()
    amount_display = response_fields.amount_display()
    currency = response_fields.currency()
    reference = serializers.CharField(max_length=35, allow_null=True)
    description = serializers.CharField(max_length=255, allow_null=True)
    created_at = response_fields.instant()
    updated_at = response_fields.instant()
    completed_at = response_fields.instant(
        allow_null=True,
        help_text="The bank's payment time, or `created_at` if staff accepted money with a time before it.",
    )
    card = Card(allow_null=True, help_text="Null for QR payments.")
    metadata = response_fields.metadata(allow_null=True)
    amount_received = response_fields.satang(
        1,
        response_fields.MAX_SATANG,
        "Satang received. Of a paid payment: only if it is not `amount`. Of any other: the money that "
        "arrived and did not fit, while it is held (see `exceptions`).",
        allow_null=True,
    )
    amount_refunded = response_fields.satang(
        0, response_fields.MAX_SATANG, "Satang that went back to the payer."
    )
    failure_code = serializers.CharField(
        max_length=40, allow_null=True, help_text="Why a failed payment failed."
    )
    expires_at = response_fields.instant(allow_null=True, help_text="Null if the payment does not expire.")
    authorize_uri = serializers.URLField(
        max_length=1000,
        allow_null=True,
        help_text="The page where the payer authorises the charge (3-D Secure); else null.",
    )
    exceptions = PaymentExceptionObject(
        many=True,
        help_text="Money that arrived and did not match: the newest 20, oldest first; usually empty.",
    )
    exceptions_has_more = serializers.BooleanField(
        help_text="Whether there are older ones: list them by `GET .../payments/{payment_id}/exceptions`."
    )
    unmatched_money = UnmatchedMoney(
        required=False,
        allow_null=True,
        help_text="Only in the answer of `GET .../payments/{payment_id}`. Not null while an unpaid payment "
        "is one of the most likely ones for money of its amount that arrived at your biller id with an "
        "unknown reference. It is no proof that this customer paid.",
    )
    payer = Payer(allow_null=True, help_text="Null until a bank has reported the payer, and for cards.")
    bank_transaction_id = response_fields.PatternField(
        {"pattern": "^.{1,64}$"}, allow_null=True, help_text="The bank's id of the payer's transfer."
    )
    refunds = RefundSummary()
    livemode = serializers.BooleanField(help_text="False for test money.")


class PaymentList(response_fields.CursorPage):
    """A page of payments."""

    payments = PaymentObject(many=True)
    searched_to = response_fields.public_id(
        "pay_",
        required=False,
        help_text="Only if a search by `amount` or `metadata` ended before all payments of the period were "
        "read: continue with this id as `after` (or as `before`). `total` counts what was found from the "
        "cursor until here.",
    )


class PaymentEventData(serializers.Serializer[Any]):
    """A payment at the moment of an event."""

    payment_id = response_fields.public_id("pay_")
    status = serializers.ChoiceField(PaymentStatus.choices)
    amount = response_fields.satang()
    amount_display = response_fields.amount_display()
    currency = response_fields.currency()
    qr_code_id = response_fields.public_id("qr_", allow_null=True)
    reference = serializers.CharField(max_length=35, allow_null=True)
    metadata = response_fields.metadata(allow_null=True)
    failure_code = serializers.CharField(max_length=40, allow_null=True)
    amount_received = serializers.IntegerField(
        min_value=1,
        max_value=response_fields.MAX_SATANG,
        required=False,
        help_text="Satang received; absent if they are the amount.",
    )


class PaymentExceptionEventData(PaymentEventData):
    """A payment, and what became of money that arrived for it and did not fit."""

    amount_received = response_fields.satang(
        1, response_fields.MAX_SATANG, "As in the payment object.", allow_null=True
    )
    exception = PaymentExceptionObject()


_CARD_DIGITS = re.compile("[0-9]{13,19}")


def looks_like_card_number(text: str) -> bool:
    """Whether `text` is 13 to 19 digits, perhaps with separators, with a valid check digit (Luhn)."""
    digits = text.replace("-", "").replace("_", "")
    return _CARD_DIGITS.fullmatch(digits) is not None and _luhn_sum(digits) % 10 == 0


def _luhn_sum(digits: str) -> int:
    doubled = (2 * int(digit) for digit in digits[-2::-2])
    return sum(int(digit) for digit in digits[::-2]) + sum(double // 10 + double % 10 for double in doubled)
