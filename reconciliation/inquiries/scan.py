"""Find payments that stay pending, so that their bank is asked. Creating a code costs nothing for it."""

import time
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

import banks
from core import ids
from payments.models import Payment, PaymentStatus
from reconciliation.inquiries import schedule
from reconciliation.models import BankRateLimit, Inquiry, ScanCursor

OPEN_STATUSES = (PaymentStatus.PENDING, PaymentStatus.EXPIRED)
# Most are paid by then, and never created.
MIN_AGE = timedelta(seconds=4)
# A payment may be seen so much later than its id says: PostgreSQL ends every statement and every idle
# transaction before that (SESSION_LIMITS), and clocks of web servers differ a little.
COMMIT_DELAY = timedelta(minutes=1)
# Looked at, and created, in one commit: what is more than this is for the next.
WINDOW, BATCH_SIZE = timedelta(minutes=10), 2000
# What was older when the first search began is left out: the bank's statement tells of it.
MAX_AGE = timedelta(days=2)
# After hours without workers the rest is for the next sweep.
PATIENCE_SECONDS = 2.0


def create_inquiries(*, now: datetime) -> int:
    """Enrol what has stayed pending since the last search. Sweeps may run at once. Returns how many."""
    first: dict[str, Any] = {"created_before": lambda: _first_cursor(now)}
    known, _ = ScanCursor.objects.get_or_create(id=1, defaults=first)
    start, end = known.created_before, now - schedule.scaled(MIN_AGE)
    created, ends_at = 0, time.monotonic() + PATIENCE_SECONDS
    while start < end and time.monotonic() < ends_at:
        until = min(start + WINDOW, end)
        count = _create_batch(start, until, now)
        created += count
        if count < BATCH_SIZE:
            start = until
            _advance_cursor(min(until, now - COMMIT_DELAY))
    return created


def _first_cursor(now: datetime) -> datetime:
    """Where to start in a database that was never searched."""
    oldest = Payment.objects.order_by("pk").values_list("created_at", flat=True).first()
    return max(now - MAX_AGE, (oldest or now) - COMMIT_DELAY)


def unconfirmed_payments(start: datetime, until: datetime) -> "QuerySet[Payment]":
    """Codes of these seconds that nobody confirmed: a range of primary keys, which sort by creation time."""
    created: QuerySet[Payment] = Payment.objects.filter(
        pk__gte=ids.first("pay_", start), pk__lt=ids.first("pay_", until)
    )
    return created.filter(status__in=OPEN_STATUSES, qr_code_id__isnull=False, inquiry__isnull=True)


@transaction.atomic
def _create_batch(start: datetime, until: datetime, now: datetime) -> int:
    """In the order of ids, so that sweeps at once wait for each other instead of locking each other out."""
    found = (
        unconfirmed_payments(start, until)
        .filter(merchant__bank__in=banks.banks_with_inquiry())
        .order_by("pk")
    )
    drafts = [_build_inquiry(payment, now) for payment in found.select_related("merchant")[:BATCH_SIZE]]
    Inquiry.objects.bulk_create(drafts, ignore_conflicts=True)
    limits = [
        BankRateLimit(bank=bank, available_at=Now()) for bank in sorted({draft.bank for draft in drafts})
    ]
    BankRateLimit.objects.bulk_create(limits, ignore_conflicts=True)
    return len(drafts)


def _advance_cursor(reached: datetime) -> None:
    ScanCursor.objects.filter(created_before__lt=reached).update(created_before=reached)


def _build_inquiry(payment: Payment, now: datetime) -> Inquiry:
    due_at, bank = schedule.inquiry_times(payment)[0], payment.merchant.bank
    return Inquiry(payment=payment, bank=bank, due_at=due_at, created_at=now)
