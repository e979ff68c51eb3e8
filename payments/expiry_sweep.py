"""Store the expiry of payments that nobody paid in time. See `payments.expiry` for the rule."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from django.db import transaction

from core import due_work
from payments import services
from payments.models import Payment

EXPIRY_BATCH = 500


def expire_due(*, now: datetime, batch: int = EXPIRY_BATCH) -> int:
    """Expire all overdue payments, `batch` payments a commit. Returns how many. Runs may overlap."""
    return due_work.in_batches(partial(_expire_batch, now), batch)


@transaction.atomic
def _expire_batch(now: datetime, batch: int) -> int:
    due = Payment.objects.overdue(now).order_by("expires_at")
    payments = list(due.select_for_update(skip_locked=True, no_key=True)[:batch])
    services.expire(payments, now=now)
    return len(payments)


def store(payments: Sequence[Payment], now: datetime) -> None:
    """Expire the payments that are past their expiry. Call it before another transition."""
    services.expire([payment for payment in payments if payment.status_at(now) != payment.status], now=now)
