"""The times of inquiries about an unpaid QR code. These functions read no database and no clock."""

from datetime import datetime, time, timedelta
from zlib import crc32

from django.conf import settings

from core.clock import BANGKOK
from payments.models import Payment

AFTER_CREATION = (5, 15, 30, 60)  # seconds after the creation of the code, while the payer is in the shop
# Seconds before the expiry, so that a paid code does not become "expired".
BEFORE_EXPIRY = 5
# Seconds after the expiry, for payments of the last moment and late bookings of the bank.
AFTER_EXPIRY = (1, 60, 300, 3600)
# After the bank day in which the code expired, when the bank has booked all of the day. The inquiries about
# the codes of a day are spread over 2 hours, because a bank takes few calls per second.
AFTER_MIDNIGHT, SPREAD = timedelta(minutes=15), timedelta(hours=2)
URGENT_FOR = timedelta(minutes=2)  # a payer may wait for the result until 2 minutes after the expiry
# After no answer, the delay is half of the time since the inquiry was due, within these limits.
SHORTEST_WAIT, LONGEST_WAIT = timedelta(seconds=5), timedelta(minutes=10)
# Inquiries without an answer end a day after the last planned one. Then only the bank's statement helps.
GIVE_UP_AFTER = timedelta(days=1)


def inquiry_times(payment: Payment) -> list[datetime]:
    """Return the planned times of all inquiries about a QR payment."""
    assert payment.expires_at is not None, "it has a code"
    place = crc32(payment.id.encode()) / 2**32
    return plan_times(payment.created_at, payment.expires_at, place)


def is_urgent(payment: Payment, at: datetime) -> bool:
    """Return whether a payer may wait for the answer to an inquiry of this time."""
    assert payment.expires_at is not None, "it has a code"
    return at <= payment.expires_at + scaled(URGENT_FOR)


def plan_times(created_at: datetime, expires_at: datetime, place: float) -> list[datetime]:
    """Return the planned times in order. If a code ends early, `expires_at` is its end.

    place: the place of the code among those of its day, from 0 to 1, for the inquiry after the day.
    """
    last_call = expires_at - scaled(timedelta(seconds=BEFORE_EXPIRY))
    early = [created_at + scaled(timedelta(seconds=seconds)) for seconds in AFTER_CREATION]
    next_day = expires_at.astimezone(BANGKOK).date() + timedelta(days=1)
    end_of_day = datetime.combine(next_day, time(), BANGKOK) + AFTER_MIDNIGHT + place * SPREAD
    late = [timedelta(seconds=seconds) for seconds in AFTER_EXPIRY] + [end_of_day - expires_at]
    return [
        *(instant for instant in early if instant < last_call),
        *([last_call] if last_call > created_at else []),
        *sorted(expires_at + scaled(wait) for wait in late),
    ]


def next_after(at: datetime, plan: list[datetime]) -> datetime | None:
    """Return the first planned time after `at`, or None after the last. Missed times are not made up for."""
    return next((instant for instant in plan if instant > at), None)


def retry_at(at: datetime, plan: list[datetime]) -> datetime | None:
    """Return the next time after an inquiry without an answer at `at`, or None a day after the last."""
    due_at = max((instant for instant in plan if instant <= at), default=at)
    wait = min(max((at - due_at) / 2, scaled(SHORTEST_WAIT)), scaled(LONGEST_WAIT))
    upcoming = next_after(at, plan)
    if upcoming is not None:
        return min(at + wait, upcoming)
    return at + wait if at - due_at < scaled(GIVE_UP_AFTER) else None


def scaled(wait: timedelta) -> timedelta:
    """The waiting time, divided by SPEEDUP."""
    speedup: float = settings.SPEEDUP
    return wait / speedup
