from typing import Any

from core import money
from core.clock import iso
from ledger.balance_transactions import Change, change_of
from ledger.models import BalanceTransaction
from ledger.services import Balance
from transactions.models import Transaction


def transaction_object(transaction: Transaction) -> dict[str, Any]:
    return {
        "transaction_id": transaction.id,
        "payment_id": transaction.payment_id,
        "type": transaction.type,
        "status": transaction.status,
        "amount": transaction.amount,
        "amount_display": money.display(transaction.amount),
        "currency": transaction.currency,
        "created_at": iso(transaction.created_at),
    }


def balance_transaction_object(row: BalanceTransaction, after: Change) -> dict[str, Any]:
    change = change_of(row)
    return {
        "balance_transaction_id": row.id,
        "type": row.type,
        "amount": change.available,
        "amount_display": money.display(change.available),
        "balance_after": after.available,
        "reserved_amount": change.reserved,
        "reserved_after": after.reserved,
        "unconfirmed_amount": change.unconfirmed,
        "unconfirmed_after": after.unconfirmed,
        "currency": money.CURRENCY,
        "source": row.source_id,
        "created_at": iso(row.created_at),
    }


def balance_object(balance: Balance) -> dict[str, Any]:
    owed = {"owed": balance.debt} if balance.debt else {}
    unconfirmed = {"unconfirmed": balance.unconfirmed} if balance.unconfirmed else {}
    return {
        "available": balance.available,
        "reserved": balance.reserved,
        **owed,
        **unconfirmed,
        "currency": money.CURRENCY,
    }
