"""The list of payments and what it is filtered by."""

from counts.lists import ClockRule, CountedList
from payments.models import Payment, PaymentStatus

PAYMENTS = CountedList(
    "payments",
    Payment,
    kind_columns=("status",),
    kinds=tuple(PaymentStatus.values),
    # `payments.expiry` in SQL. A task stores it within seconds, so few rows match.
    clock_rule=ClockRule(PaymentStatus.PENDING, PaymentStatus.EXPIRED, "expires_at <= %(now)s"),
    amount_sql="amount",
)
