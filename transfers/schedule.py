"""When the bank is asked, or told, again."""

from datetime import timedelta

from django.conf import settings

# Seconds to the first inquiry, from it to the second and so on; then the last one for ever.
WAITS = (1, 2, 5, 10, 30, 60, 300, 900, 3600)
# Seconds until a bank that could not be reached is told again: a tenth of the order's age, between these.
SOONEST, LATEST = 5.0, 600.0
# Seconds until an order that is held is tried again.
HOLD = 10.0
# After so long without a last word it is for people to ask.
OVERDUE = timedelta(minutes=15)


def next_inquiry(inquiries: int) -> timedelta:
    """How long to wait after so many inquiries."""
    return _paced(WAITS[min(inquiries, len(WAITS) - 1)])


def next_sending(age: timedelta) -> timedelta:
    """How long to wait with an order of that age, of which its bank has never heard."""
    return _paced(min(max(age.total_seconds() / 10, SOONEST), LATEST))


def next_try() -> timedelta:
    """How long to wait with an order that must not be submitted yet."""
    return _paced(HOLD)


def _paced(seconds: float) -> timedelta:
    return timedelta(seconds=seconds / settings.TRANSFER_PACE)
