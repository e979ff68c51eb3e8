"""Attempts are kept for a while. Deliveries and events stay: they are the record of what was told."""

import time
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from webhooks.models import Attempt

AT_ONCE = 1000
# What is left waits for the next run, so that no other sweep waits for this one.
RUN_SECONDS = 10.0


def forget_attempts(*, now: datetime, batch: int = AT_ONCE, seconds: float = RUN_SECONDS) -> int:
    """Delete what was attempted more than WEBHOOK_ATTEMPT_DAYS ago, the oldest first; returns how many.

    Ends when nothing is left or the time is up, after one batch at least. May run twice at once.
    """
    before, until = now - timedelta(days=settings.WEBHOOK_ATTEMPT_DAYS), time.monotonic() + seconds
    forgotten = 0
    while deleted := _forget_some(before, batch):
        forgotten += deleted
        if time.monotonic() >= until:
            break
    return forgotten


@transaction.atomic
def _forget_some(before: datetime, batch: int) -> int:
    """One short commit. What another run is deleting is passed over, not waited for."""
    old = Attempt.objects.filter(started_at__lt=before).order_by("started_at")
    pks = list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:batch])
    deleted, _ = Attempt.objects.filter(pk__in=pks).delete()
    return deleted
