"""When the bank is asked, or told, again."""

from datetime import timedelta

from django.conf import settings

from core import due_work

# Seconds to the first inquiry, from it to the second and so on; then the last one for ever.
INQUIRY_DELAYS = (1, 2, 5, 10, 30, 60, 300, 900, 3600)
# Seconds until a bank that could not be reached is told again: a tenth of the order's age, between these.
MIN_RESEND_SECONDS, MAX_RESEND_SECONDS = 5.0, 600.0
# Seconds until an order that is held is tried again.
HOLD_SECONDS = 10.0
# After so long without a last word it is for people to ask.
OVERDUE_AFTER = timedelta(minutes=15)


def inquiry_delay(inquiries: int) -> timedelta:
    """How long to wait after so many inquiries."""
    return _delay(due_work.interval(INQUIRY_DELAYS, inquiries))


def resend_delay(age: timedelta) -> timedelta:
    """How long to wait with an order of that age, of which its bank has never heard."""
    return _delay(min(max(age.total_seconds() / 10, MIN_RESEND_SECONDS), MAX_RESEND_SECONDS))


def hold_delay() -> timedelta:
    """How long to wait with an order that must not be submitted yet."""
    return _delay(HOLD_SECONDS)


def _delay(seconds: float) -> timedelta:
    return timedelta(seconds=seconds / settings.SPEEDUP)
