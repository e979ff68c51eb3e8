"""Store the expiry of payments that nobody paid in time. See `payments.expiry` for the rule."""

from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import transaction

from payments import services
from payments.models import Payment

# A batch locks its payments for about a tenth of a second.
EXPIRY_BATCH = 1_000
BEGINNING = datetime.min.replace(tzinfo=UTC)


def expire_due(*, now: datetime, batch: int = EXPIRY_BATCH) -> int:
    """Expire all overdue payments, `batch` payments a commit. Returns how many. Runs may overlap."""
    count, since = 0, BEGINNING
    while True:
        with transaction.atomic():
            payments = services.expire_overdue(now=now, since=since, limit=batch)
        count += len(payments)
        if len(payments) < batch:
            return count
        since = max(payment.expires_at for payment in payments if payment.expires_at)


def store(payments: Sequence[Payment], now: datetime) -> None:
    """Expire the payments that are past their expiry. Call it before another transition."""
    services.expire([payment for payment in payments if payment.status_at(now) != payment.status], now=now)
