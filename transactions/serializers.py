from typing import Any

from rest_framework import serializers

from core import fields, ids, response_fields
from core.paging import PeriodPageQuery, ZonedQuery
from ledger.journal_types import BalanceTransactionType
from transactions.models import TransactionStatus, TransactionType

MOST_HELD = 2**53 - 1
"""Satang: the largest integer that every JSON reader keeps exact."""
LISTED_TYPES = [TransactionType.PAYMENT, TransactionType.REFUND]  # failed attempts are found by status


class TransactionQuery(PeriodPageQuery):
    """Filters of the transaction history."""

    status = fields.Choice(TransactionStatus.values, required=False, help_text="Only this status.")
    type = fields.Choice([kind.value for kind in LISTED_TYPES], required=False, help_text="Only this type.")


class TransactionObject(serializers.Serializer[Any]):
    transaction_id = response_fields.public_id("txn_")
    payment_id = response_fields.public_id("pay_")
    type = serializers.ChoiceField(TransactionType.choices)
    status = serializers.ChoiceField(TransactionStatus.choices)
    amount = response_fields.satang(
        -response_fields.MAX_SATANG, response_fields.MAX_SATANG, "Satang; negative for refunds."
    )
    amount_display = response_fields.amount_display()
    currency = response_fields.currency()
    created_at = response_fields.instant()


class TransactionList(response_fields.CursorPage):
    """A page of transactions."""

    transactions = TransactionObject(many=True)


class BalanceTransactionQuery(PeriodPageQuery):
    """Filters of what changed the balance."""

    type = fields.Choice(BalanceTransactionType.values, required=False, help_text="Only this type.")


class BalanceTransactionObject(serializers.Serializer[Any]):
    """A change of the balance. Each part of the balance has its change and its value afterwards."""

    balance_transaction_id = response_fields.public_id("bal_")
    type = serializers.ChoiceField(
        BalanceTransactionType.choices,
        help_text="`reserved` money is set aside, `released` is available again, `paid` has left. "
        "`returned`: it came back after it had left. `reversal`: the bank took a payment back. "
        "`unconfirmed` money is only in a statement file; `confirmed` makes it available.",
    )
    amount = response_fields.satang(
        -response_fields.MAX_SATANG,
        response_fields.MAX_SATANG,
        "Satang that `available` changed by, before debts: their sum is `available` less `owed`.",
    )
    amount_display = response_fields.amount_display()
    balance_after = response_fields.satang(
        -MOST_HELD, MOST_HELD, "`available` less `owed` after this change; negative if money was owed."
    )
    reserved_amount = response_fields.satang(
        -response_fields.MAX_SATANG, response_fields.MAX_SATANG, "Satang that `reserved` changed by."
    )
    reserved_after = response_fields.satang(-MOST_HELD, MOST_HELD, "`reserved` after this change.")
    unconfirmed_amount = response_fields.satang(
        -response_fields.MAX_SATANG, response_fields.MAX_SATANG, "Satang that `unconfirmed` changed by."
    )
    unconfirmed_after = response_fields.satang(-MOST_HELD, MOST_HELD, "`unconfirmed` after this change.")
    currency = response_fields.currency()
    source = response_fields.PatternField(  # type: ignore[assignment]
        {"pattern": f"^(pay|ref|wd)_[0-9A-Za-z]{{{ids.BODY_LENGTH}}}$"},
        help_text="The payment, refund or withdrawal.",
    )
    created_at = response_fields.instant()


class BalanceTransactionList(response_fields.CursorPage):
    """A page of what changed the balance."""

    balance_transactions = BalanceTransactionObject(many=True)


class BalanceQuery(ZonedQuery):
    """The instant of the balance."""

    at = fields.QueryInstant(
        end=True,
        required=False,
        help_text="The balance at the end of this date (of `timezone`), or at this instant.",
    )


class BalanceObject(serializers.Serializer[Any]):
    """The balance of a merchant."""

    available = response_fields.satang(0, MOST_HELD, "Satang that can be refunded or withdrawn.")
    reserved = response_fields.satang(
        0, MOST_HELD, "Satang set aside for refunds and withdrawals in progress."
    )
    owed = serializers.IntegerField(
        min_value=1,
        max_value=MOST_HELD,
        required=False,
        help_text="Satang that a bank took back beyond the balance. Incoming money repays it first. "
        "Absent if nothing is owed.",
    )
    unconfirmed = serializers.IntegerField(
        min_value=1,
        max_value=MOST_HELD,
        required=False,
        help_text="Satang that only a statement file reports. They become available when the bank or a "
        "second person confirms them. Absent if there are none.",
    )
    currency = response_fields.currency()
