from typing import Annotated, NotRequired, TypedDict

from core import ids, money
from core.clock import iso
from core.http.objects import (
    MAX_SATANG,
    AmountDisplay,
    Currency,
    Instant,
    PaymentId,
    TransactionId,
    between,
    id_schema,
    one_of,
    satang,
)
from ledger.balance_transactions import Change, change_of
from ledger.journal_types import BalanceTransactionType
from ledger.models import BalanceTransaction
from ledger.services import Balance
from transactions.models import Transaction, TransactionStatus, TransactionType

MOST_HELD = 2**53 - 1  # satang: the largest integer that every JSON reader keeps exact


class TransactionObject(TypedDict):
    transaction_id: TransactionId
    payment_id: PaymentId
    type: Annotated[str, one_of(TransactionType)]
    status: Annotated[str, one_of(TransactionStatus)]
    amount: Annotated[int, satang(-MAX_SATANG), "Satang; negative for refunds."]
    amount_display: AmountDisplay
    currency: Currency
    created_at: Instant


class BalanceTransactionObject(TypedDict):
    """A change of the balance. Each part of the balance has its change and its value afterwards."""

    balance_transaction_id: Annotated[str, id_schema("bal_")]
    type: Annotated[
        str,
        one_of(BalanceTransactionType),
        "`reserved` money is set aside, `released` is available again, `paid` has left. "
        "`returned`: it came back after it had left. `reversal`: the bank took a payment back. "
        "`unconfirmed` money is only in a statement file; `confirmed` makes it available. `unsettled` money "
        "the acquirer has not paid; `settled` makes it available. `fee_returned` and `fee_added`: the "
        "statement of the bank named another fee than the one that was taken. The acquirer also gives "
        "back the fee of a voided charge.",
    ]
    amount: Annotated[
        int,
        satang(-MAX_SATANG),
        "Satang that `available` changed by, before debts: their sum is `available` less `owed`.",
    ]
    amount_display: AmountDisplay
    balance_after: Annotated[
        int,
        satang(-MOST_HELD, MOST_HELD),
        "`available` less `owed` after this change; negative if money was owed.",
    ]
    reserved_amount: Annotated[int, satang(-MAX_SATANG), "Satang that `reserved` changed by."]
    reserved_after: Annotated[int, satang(-MOST_HELD, MOST_HELD), "`reserved` after this change."]
    unconfirmed_amount: Annotated[int, satang(-MAX_SATANG), "Satang that `unconfirmed` changed by."]
    unconfirmed_after: Annotated[int, satang(-MOST_HELD, MOST_HELD), "`unconfirmed` after this change."]
    pending_settlement_amount: Annotated[
        int, satang(-MAX_SATANG), "Satang that `pending_settlement` changed by."
    ]
    pending_settlement_after: Annotated[
        int, satang(-MOST_HELD, MOST_HELD), "`pending_settlement` after this change."
    ]
    currency: Currency
    source: Annotated[
        str,
        {"pattern": f"^(pay|ref|wd)_[0-9A-Za-z]{{{ids.BODY_LENGTH}}}$"},
        "The payment, refund or withdrawal.",
    ]
    created_at: Instant


class BalanceObject(TypedDict):
    """The balance of a merchant."""

    available: Annotated[int, satang(0, MOST_HELD), "Satang that can be refunded or withdrawn."]
    reserved: Annotated[
        int, satang(0, MOST_HELD), "Satang set aside for refunds and withdrawals in progress."
    ]
    owed: NotRequired[
        Annotated[
            int,
            between(1, MOST_HELD),
            "Satang that a bank took back beyond the balance. Incoming money repays it first. "
            "Absent if nothing is owed.",
        ]
    ]
    unconfirmed: NotRequired[
        Annotated[
            int,
            between(1, MOST_HELD),
            "Satang that only a statement file reports. They become available when the bank or a "
            "second person confirms them. Absent if there are none.",
        ]
    ]
    pending_settlement: NotRequired[
        Annotated[
            int,
            between(1, MOST_HELD),
            "Satang of card payments, less their fees, that the acquirer has not paid. They can be refunded, "
            "and become available when it pays. Absent if there are none.",
        ]
    ]
    currency: Currency


def transaction_object(transaction: Transaction) -> TransactionObject:
    return {
        "transaction_id": transaction.id,
        "payment_id": transaction.payment_id,
        "type": transaction.type,
        "status": transaction.status,
        "amount": transaction.amount,
        "amount_display": money.with_code(transaction.amount),
        "currency": transaction.currency,
        "created_at": iso(transaction.created_at),
    }


def balance_transaction_object(row: BalanceTransaction, after: Change) -> BalanceTransactionObject:
    change = change_of(row)
    return {
        "balance_transaction_id": row.id,
        "type": row.type,
        "amount": change.available,
        "amount_display": money.with_code(change.available),
        "balance_after": after.available,
        "reserved_amount": change.reserved,
        "reserved_after": after.reserved,
        "unconfirmed_amount": change.unconfirmed,
        "unconfirmed_after": after.unconfirmed,
        "pending_settlement_amount": change.unsettled,
        "pending_settlement_after": after.unsettled,
        "currency": money.CURRENCY,
        "source": row.source_id,
        "created_at": iso(row.created_at),
    }


def balance_object(balance: Balance) -> BalanceObject:
    found: BalanceObject = {
        "available": balance.available,
        "reserved": balance.reserved,
        "currency": money.CURRENCY,
    }
    if balance.debt:
        found["owed"] = balance.debt
    if balance.unconfirmed:
        found["unconfirmed"] = balance.unconfirmed
    if balance.unsettled:
        found["pending_settlement"] = balance.unsettled
    return found
