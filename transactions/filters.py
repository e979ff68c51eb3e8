"""The list of transactions and its filters."""

from typing import Any

from counts.lists import CountedList, ListFilter
from transactions.models import Transaction, TransactionStatus, TransactionType

TRANSACTIONS = CountedList(
    "transactions",
    Transaction,
    kind_columns=("type", "status"),
    amount_sql="amount",
    kinds=tuple(
        f"{type}/{status}"
        for type, statuses in {
            TransactionType.PAYMENT: (TransactionStatus.SUCCEEDED, TransactionStatus.REFUNDED),
            TransactionType.FAILED: (TransactionStatus.FAILED,),
            TransactionType.REFUND: (
                TransactionStatus.PENDING,
                TransactionStatus.SUCCEEDED,
                TransactionStatus.FAILED,
            ),
        }.items()
        for status in statuses
    ),
)


def matching(
    merchant_id: str, *, type: str | None = None, status: str | None = None, **period: Any
) -> ListFilter[Transaction]:
    """The transactions of a merchant, of one type or status if given, within `start` and `end`."""
    kinds = [
        kind
        for kind in TRANSACTIONS.kinds
        if type in (None, kind.split("/")[0]) and status in (None, kind.split("/")[1])
    ]
    everything = type is None and status is None
    return ListFilter(TRANSACTIONS, merchant_id, None if everything else kinds, **period)
