"""Find payments that stay pending and create their inquiries. Creating a QR code does no work for it."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Greatest

import banks
from core import ids
from core.database import rows
from core.deadlines import Deadline
from payments.models import Payment, PaymentStatus
from reconciliation.inquiries import rate_limit, schedule
from reconciliation.models import Inquiry, ScanCursor

OPEN_STATUSES = (PaymentStatus.PENDING, PaymentStatus.EXPIRED)
MIN_AGE = timedelta(seconds=4)  # most payments are paid within 4 s and need no inquiry
# The commit of a payment may come this much later than the time in its id. PostgreSQL ends statements and
# idle transactions sooner (SESSION_LIMITS), and the clocks of web servers differ a little.
COMMIT_DELAY = timedelta(minutes=1)
# Nearly all commits come sooner, so a scan reads the last 3 s again, and every 10 s the whole minute.
USUAL_DELAY, RESCAN_EVERY = timedelta(seconds=3), timedelta(seconds=10)
# One commit scans at most this period and creates at most this many inquiries.
WINDOW, BATCH_SIZE = timedelta(minutes=10), 2000
# The first scan of a database leaves out older payments: bank statements report them.
MAX_AGE = timedelta(days=2)
PATIENCE_SECONDS = 2.0  # after hours without workers, the next run continues the scan
# Rows come in the order of an index, and each is joined by its key. Without statistics PostgreSQL would sort
# all pending payments of each merchant, or all inquiries that are due.
IN_ORDER = "SELECT set_config('enable_sort', 'off', true), set_config('enable_seqscan', 'off', true)"
# One statement that PostgreSQL plans once, for any number of rows.
CREATE = """
INSERT INTO reconciliation_inquiry (payment_id, bank, due_at, schedule_index, created_at)
SELECT id, bank, due_at, 0, %s
FROM unnest(%s::text[], %s::text[], %s::timestamptz[]) AS new (id, bank, due_at) ON CONFLICT DO NOTHING
"""


def create_inquiries(*, now: datetime) -> int:
    """Create inquiries for payments that stay pending. Several runs at once are safe. Returns how many."""
    cursor = ScanCursor.objects.filter(id=1).first() or _first_cursor(now)
    start, end = cursor.created_before, now - schedule.scaled(MIN_AGE)
    if now - start < COMMIT_DELAY + RESCAN_EVERY:
        start = max(start, cursor.scanned_until - USUAL_DELAY)
    is_whole = start == cursor.created_before
    created, deadline = 0, Deadline.after(PATIENCE_SECONDS)
    while start < end and not deadline.is_past:
        until = min(start + WINDOW, end)
        count = _create_batch(start, until, now)
        created += count
        if count < BATCH_SIZE:
            start = until
            reached = min(until, now - COMMIT_DELAY) if is_whole else cursor.created_before
            ScanCursor.objects.update(
                created_before=Greatest("created_before", reached),
                scanned_until=Greatest("scanned_until", until),
            )
    return created


def _first_cursor(now: datetime) -> ScanCursor:
    """Store where the first scan of a database starts."""
    oldest = Payment.objects.order_by("pk").values_list("created_at", flat=True).first()
    first = max(now - MAX_AGE, (oldest or now) - COMMIT_DELAY)
    defaults = {"created_before": first, "scanned_until": first}
    return ScanCursor.objects.get_or_create(id=1, defaults=defaults)[0]


def unconfirmed_payments(start: datetime, until: datetime) -> "QuerySet[Payment]":
    """Return unpaid QR payments of a period without an inquiry. Ids sort by creation time."""
    period = Q(pk__gte=ids.first("pay_", start), pk__lt=ids.first("pay_", until))
    unpaid = Payment.objects.filter(period, status__in=OPEN_STATUSES, qr_code_id__isnull=False)
    # PostgreSQL reads the inquiries of the period once. With a join it looks for each payment's.
    return unpaid.exclude(pk__in=Inquiry.objects.filter(period).values("pk"))


@transaction.atomic
def _create_batch(start: datetime, until: datetime, now: datetime) -> int:
    """Create inquiries in the order of ids, so that runs at once wait for each other and do not deadlock."""
    found = unconfirmed_payments(start, until).filter(qr_code__bank__in=banks.configured_banks())
    needed = found.select_related("qr_code").only("created_at", "expires_at", "qr_code__bank")
    rows.run(IN_ORDER, ())
    payments = list(needed.order_by("pk")[:BATCH_SIZE])
    if payments:
        columns = [(each.pk, each.qr_code.bank, schedule.inquiry_times(each)[0]) for each in payments]
        rows.run(CREATE, [now, *map(list, zip(*columns, strict=True))])
        rate_limit.ensure_rows({each.qr_code.bank for each in payments})
    return len(payments)
