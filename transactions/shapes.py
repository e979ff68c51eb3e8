from typing import Any

from core.clock import iso
from transactions.models import Transaction


def transaction_object(transaction: Transaction) -> dict[str, Any]:
    return {
        "transaction_id": transaction.id,
        "payment_id": transaction.payment_id,
        "type": transaction.type,
        "status": transaction.status,
        "amount": transaction.amount,
        "currency": transaction.currency,
        "created_at": iso(transaction.created_at),
    }
