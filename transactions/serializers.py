from typing import Any

from rest_framework import serializers

from core import answers, fields
from core.paging import PageQuery
from transactions.models import Status, Type

MOST_HELD = 2**53 - 1
"""Satang: the largest integer that every JSON reader keeps exact."""
LISTED_TYPES = [Type.PAYMENT, Type.REFUND]  # failed attempts are found by status


class TransactionQuery(PageQuery):
    """Filters of the transaction history."""

    status = fields.Choice(Status.values, required=False, help_text="Only this status.")
    type = fields.Choice([kind.value for kind in LISTED_TYPES], required=False, help_text="Only this type.")
    start_date = fields.QueryInstant(
        required=False, help_text="From this date (UTC) or instant on, inclusive."
    )
    end_date = fields.QueryInstant(
        end=True, required=False, help_text="Up to this date (UTC) or instant, inclusive."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return fields.ordered_dates(attrs)


class TransactionObject(serializers.Serializer[Any]):
    transaction_id = answers.public_id("txn_")
    payment_id = answers.public_id("pay_")
    type = serializers.ChoiceField(Type.choices)
    status = serializers.ChoiceField(Status.choices)
    amount = answers.satang(-answers.LARGEST, answers.LARGEST, "Satang; negative for refunds.")
    currency = answers.currency()
    created_at = answers.instant()


class TransactionList(answers.Page):
    """A page of transactions."""

    transactions = TransactionObject(many=True)


class BalanceQuery(serializers.Serializer[Any]):
    """When."""

    at = fields.QueryInstant(
        end=True,
        required=False,
        help_text="The balance as it stood at the end of this date (UTC), or at this instant.",
    )


class BalanceObject(serializers.Serializer[Any]):
    """What a merchant has."""

    available = answers.satang(0, MOST_HELD, "Satang that can be refunded or withdrawn.")
    reserved = answers.satang(0, MOST_HELD, "Satang set aside for refunds and withdrawals under way.")
    owed = serializers.IntegerField(
        min_value=1,
        max_value=MOST_HELD,
        required=False,
        help_text="Satang that a bank took back beyond the balance; what comes in fills it first. "
        "Absent where nothing is owed.",
    )
    unconfirmed = serializers.IntegerField(
        min_value=1,
        max_value=MOST_HELD,
        required=False,
        help_text="Satang that only a statement file reports. They become available when the bank or a "
        "second person confirms them. Absent where there are none.",
    )
    currency = answers.currency()
