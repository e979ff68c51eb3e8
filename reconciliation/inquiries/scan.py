"""Find payments that stay pending and create their inquiries. Creating a QR code does no work for it."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

import banks
from core import ids
from core.deadlines import Deadline
from payments.models import Payment, PaymentStatus
from reconciliation.inquiries import rate_limit, schedule
from reconciliation.models import Inquiry, ScanCursor

OPEN_STATUSES = (PaymentStatus.PENDING, PaymentStatus.EXPIRED)
# Most payments are paid within 4 s and need no inquiry.
MIN_AGE = timedelta(seconds=4)
# The commit of a payment may come this much later than the time in its id. PostgreSQL ends statements and
# idle transactions sooner (SESSION_LIMITS), and the clocks of web servers differ a little.
COMMIT_DELAY = timedelta(minutes=1)
# One commit scans at most this period and creates at most this many inquiries.
WINDOW, BATCH_SIZE = timedelta(minutes=10), 2000
# The first scan of a database leaves out older payments: bank statements report them.
MAX_AGE = timedelta(days=2)
# After hours without workers, the next run continues the scan.
PATIENCE_SECONDS = 2.0


def create_inquiries(*, now: datetime) -> int:
    """Create inquiries for payments that stayed pending since the last scan. Several runs at once are safe.

    Returns how many were created.
    """
    first: dict[str, Any] = {"created_before": lambda: _first_cursor(now)}
    cursor, _ = ScanCursor.objects.get_or_create(id=1, defaults=first)
    start, end = cursor.created_before, now - schedule.scaled(MIN_AGE)
    created, deadline = 0, Deadline.after(PATIENCE_SECONDS)
    while start < end and not deadline.is_past:
        until = min(start + WINDOW, end)
        count = _create_batch(start, until, now)
        created += count
        if count < BATCH_SIZE:
            start = until
            reached = min(until, now - COMMIT_DELAY)
            ScanCursor.objects.filter(created_before__lt=reached).update(created_before=reached)
    return created


def _first_cursor(now: datetime) -> datetime:
    """Return where the first scan of a database starts."""
    oldest = Payment.objects.order_by("pk").values_list("created_at", flat=True).first()
    return max(now - MAX_AGE, (oldest or now) - COMMIT_DELAY)


def unconfirmed_payments(start: datetime, until: datetime) -> "QuerySet[Payment]":
    """Return unpaid QR payments of a period without an inquiry. Ids sort by creation time."""
    created = Payment.objects.filter(pk__gte=ids.first("pay_", start), pk__lt=ids.first("pay_", until))
    found: QuerySet[Payment] = created.filter(
        status__in=OPEN_STATUSES, qr_code_id__isnull=False, inquiry__isnull=True
    )
    return found


@transaction.atomic
def _create_batch(start: datetime, until: datetime, now: datetime) -> int:
    """Create inquiries in the order of ids, so that runs at once wait for each other and do not deadlock."""
    found = unconfirmed_payments(start, until).filter(merchant__bank__in=banks.configured_banks())
    inquiries = [
        Inquiry(
            payment=payment,
            bank=payment.merchant.bank,
            due_at=schedule.inquiry_times(payment)[0],
            created_at=now,
        )
        for payment in found.select_related("merchant").order_by("pk")[:BATCH_SIZE]
    ]
    Inquiry.objects.bulk_create(inquiries, ignore_conflicts=True)
    rate_limit.ensure_rows({inquiry.bank for inquiry in inquiries})
    return len(inquiries)
