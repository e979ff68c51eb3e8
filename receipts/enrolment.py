"""Find payments that stay pending, so that their bank is asked. Creating a code costs nothing for it."""

import time
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

import banks
from core import ids
from payments.models import Payment, Status
from receipts import schedule
from receipts.models import Enrolment, Inquiry, Turn

OPEN = (Status.PENDING, Status.EXPIRED)
# Most are paid by then, and never enrolled.
AGE = timedelta(seconds=4)
# A payment may be seen so much later than its id says: PostgreSQL ends every statement and every idle
# transaction before that (SESSION_LIMITS), and clocks of web servers differ a little.
SETTLED = timedelta(minutes=1)
# Looked at, and enrolled, in one commit: what is more than this is for the next.
SPAN, BATCH = timedelta(minutes=10), 2000
# What was older when the first search began is left out: the bank's statement tells of it.
HORIZON = timedelta(days=2)
# After hours without workers the rest is for the next sweep.
PATIENCE_SECONDS = 2.0


def enrol(*, now: datetime) -> int:
    """Enrol what has stayed pending since the last search. Sweeps may run at once. Returns how many."""
    never: dict[str, Any] = {"created_before": lambda: _beginning(now)}
    known, _ = Enrolment.objects.get_or_create(id=1, defaults=never)
    begin, end = known.created_before, now - schedule.paced(AGE)
    enrolled, ends_at = 0, time.monotonic() + PATIENCE_SECONDS
    while begin < end and time.monotonic() < ends_at:
        until = min(begin + SPAN, end)
        count = _enrol_some(begin, until, now)
        enrolled += count
        if count < BATCH:
            begin = until
            _remember(min(until, now - SETTLED))
    return enrolled


def _beginning(now: datetime) -> datetime:
    """Where to begin in a database that was never searched."""
    oldest = Payment.objects.order_by("pk").values_list("created_at", flat=True).first()
    return max(now - HORIZON, (oldest or now) - SETTLED)


def stayed_pending(begin: datetime, until: datetime) -> "QuerySet[Payment]":
    """Codes of these seconds that nobody confirmed: a range of primary keys, which sort by creation time."""
    born: QuerySet[Payment] = Payment.objects.filter(
        pk__gte=ids.first("pay_", begin), pk__lt=ids.first("pay_", until)
    )
    return born.filter(status__in=OPEN, qr_code_id__isnull=False, inquiry__isnull=True)


@transaction.atomic
def _enrol_some(begin: datetime, until: datetime, now: datetime) -> int:
    """In the order of ids, so that sweeps at once wait for each other instead of locking each other out."""
    found = stayed_pending(begin, until).filter(merchant__bank__in=banks.asked()).order_by("pk")
    drafts = [_draft(payment, now) for payment in found.select_related("merchant")[:BATCH]]
    Inquiry.objects.bulk_create(drafts, ignore_conflicts=True)
    turns = [Turn(bank=bank, free_at=Now()) for bank in sorted({draft.bank for draft in drafts})]
    Turn.objects.bulk_create(turns, ignore_conflicts=True)
    return len(drafts)


def _remember(reached: datetime) -> None:
    Enrolment.objects.filter(created_before__lt=reached).update(created_before=reached)


def _draft(payment: Payment, now: datetime) -> Inquiry:
    due_at, bank = schedule.of(payment)[0], payment.merchant.bank
    return Inquiry(payment=payment, bank=bank, due_at=due_at, created_at=now)
