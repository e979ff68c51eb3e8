"""The list of withdrawals and what it is filtered by."""

from counts.lists import CountedList
from withdrawals.models import Withdrawal, WithdrawalStatus

WITHDRAWALS = CountedList(
    "withdrawals",
    Withdrawal,
    kind_columns=("status",),
    kinds=tuple(WithdrawalStatus.values),
    amount_sql="amount",
)
