"""When a transfer is sent or inquired again."""

from datetime import timedelta

from django.conf import settings

from core.work import due_work

# Seconds before the first inquiry, before the second and so on.
INQUIRY_DELAYS = (1, 2, 5, 10, 30, 60, 300, 900, 3600)
# An order that did not reach its bank is sent again after a tenth of its age, within these limits.
MIN_RESEND_SECONDS, MAX_RESEND_SECONDS = 5.0, 600.0
HOLD_SECONDS = 10.0  # an order that must wait, such as for a merchant's debt, is tried again after 10 s
LOOK_UP_SECONDS = 60.0  # in safe mode a bank is asked every minute about an order that is queued here
# Staff should ask the bank about a transfer without a result for 15 minutes.
OVERDUE_AFTER = timedelta(minutes=15)


def inquiry_delay(inquiries: int) -> timedelta:
    return delay(due_work.interval(INQUIRY_DELAYS, inquiries))


def resend_delay(age: timedelta) -> timedelta:
    """Return the delay for an order of this age that did not reach its bank."""
    return delay(min(max(age.total_seconds() / 10, MIN_RESEND_SECONDS), MAX_RESEND_SECONDS))


def delay(seconds: float) -> timedelta:
    """The waiting time, divided by SPEEDUP."""
    return timedelta(seconds=seconds / settings.SPEEDUP)
