"""Store the expiry of payments that nobody paid in time. See `Payment.status_at` for the rule."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime

from django.db import connection, transaction

from payments import services
from payments.models import Payment

EXPIRY_BATCH = 1_000  # a batch locks its payments for about a tenth of a second
BEGINNING = datetime.min.replace(tzinfo=UTC)


def expire_due(*, now: datetime, batch: int = EXPIRY_BATCH) -> int:
    """Expire all overdue payments, `batch` payments a commit. Returns how many. Runs may overlap.

    After a full batch a second thread helps with a connection of its own: PostgreSQL expires the payments of
    one while the other builds events, and no commit makes both wait.
    """
    count, since = _expire_batch(BEGINNING, now, batch)
    if count < batch:
        return count
    with ThreadPoolExecutor(1, thread_name_prefix="expiry") as pool:
        helped = pool.submit(copy_context().run, _help, since, now, batch)
        count += _expire_from(since, now, batch)
    return count + helped.result()


def _help(since: datetime, now: datetime, batch: int) -> int:
    try:
        return _expire_from(since, now, batch)
    finally:
        connection.close()


def _expire_from(since: datetime, now: datetime, batch: int) -> int:
    """Expire batches until one is not full: the other thread holds the rest."""
    total, count = 0, batch
    while count == batch:
        count, since = _expire_batch(since, now, batch)
        total += count
    return total


def _expire_batch(since: datetime, now: datetime, batch: int) -> tuple[int, datetime]:
    """Expire payments that expired from `since` on. Returns how many, and where the next batch starts."""
    with transaction.atomic():
        payments = services.expire_overdue(now=now, since=since, limit=batch)
    return len(payments), max(
        (payment.expires_at for payment in payments if payment.expires_at), default=since
    )


def store(payments: Sequence[Payment], now: datetime) -> None:
    """Expire the payments that are past their expiry. Call it before another transition."""
    services.expire([payment for payment in payments if payment.status_at(now) != payment.status], now=now)
