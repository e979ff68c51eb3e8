"""The list of refunds and what it is filtered by."""

from counts.lists import CountedList
from refunds.models import Refund, RefundStatus

REFUNDS = CountedList(
    "refunds", Refund, kind_columns=("status",), kinds=tuple(RefundStatus.values), amount_sql="amount"
)
