"""Advance the time of a test merchant: bring forward what is due, as if the time had passed.

No clock is changed, because books, signatures and other merchants share it. Instead, times that lie ahead
come nearer by the span, but not nearer than now.
"""

from datetime import datetime, timedelta

from django.db import transaction

from merchants.models import Merchant
from testclock import moves
from testclock.errors import ClockLimitReached, ClockNotAdvanceable
from testclock.models import MAX_SECONDS, MerchantClock
from testclock.moves import Advance
from testclock.shapes import MovedRows
from webhooks import wakeup

MAX_ROWS = 5_000
"""That one advance may move. It takes a second or two, in which other changes of these rows wait."""


@transaction.atomic
def advance(*, merchant: Merchant, seconds: int, now: datetime) -> tuple[MerchantClock, MovedRows]:
    """Bring forward by `seconds` what is due later than `now`. Returns the clock, and how many rows moved.

    Raises ClockLimitReached, ClockNotAdvanceable.
    """
    # Advances of one merchant take turns. A trigger refuses live merchants.
    MerchantClock.objects.bulk_create([MerchantClock(merchant=merchant)], ignore_conflicts=True)
    row = MerchantClock.objects.select_for_update(no_key=True).get(pk=merchant.pk)
    left = MAX_SECONDS - row.advanced_seconds
    if seconds > left:
        raise ClockLimitReached(seconds_left=left)
    step = Advance(merchant, now, timedelta(seconds=seconds))
    if moves.count_rows(step, MAX_ROWS) > MAX_ROWS:
        raise ClockNotAdvanceable(limit=f"{MAX_ROWS:,}")
    row.advanced_seconds, row.advanced_at = row.advanced_seconds + seconds, now
    row.save()
    moved = moves.move(step)
    wakeup.wake_on_commit()
    return row, moved


def find(merchant: Merchant) -> MerchantClock:
    """The merchant's clock, also if it was never advanced."""
    return MerchantClock.objects.filter(pk=merchant.pk).first() or MerchantClock(merchant=merchant)


def reset(*, merchant: Merchant) -> None:
    """Count from 0 again. What has moved stays."""
    MerchantClock.objects.filter(pk=merchant.pk).update(advanced_seconds=0)
