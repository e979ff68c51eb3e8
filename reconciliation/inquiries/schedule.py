"""When a bank is asked about a payment that nobody confirmed. Pure: instants in, instants out."""

from datetime import datetime, time, timedelta
from zlib import crc32

from django.conf import settings

from core.clock import BANGKOK
from payments.models import Payment

# Seconds after the code was made, while the payer stands at the till.
AFTER_CREATION = (5, 15, 30, 60)
# Before the code expires: so that a shop is not told "expired" of what was paid.
BEFORE_EXPIRY = 5
# After it expired: what was paid in the last moment, and what a bank books late.
AFTER_EXPIRY = (1, 60, 300, 3600)
# After the end of the Bangkok day in which it expired: by then a bank has booked that day. It takes few
# questions a second, so not about all codes of the day at once.
AFTER_MIDNIGHT, SPREAD = timedelta(minutes=15), timedelta(hours=2)
# Somebody may wait at the till for a code, or for the word that it was paid in its last moment.
URGENT_FOR = timedelta(minutes=2)
# A bank that does not answer is asked again after half the time since its answer was due, within these.
SHORTEST_WAIT, LONGEST_WAIT = timedelta(seconds=5), timedelta(minutes=10)
# After the last entry: from then on only its statement can tell.
GIVE_UP_AFTER = timedelta(days=1)


def inquiry_times(payment: Payment) -> list[datetime]:
    """All at which the bank is asked about a payment with a code."""
    place = crc32(payment.id.encode()) / 2**32
    return plan_times(payment.created_at, _code_expiry(payment), place)


def is_urgent(payment: Payment, at: datetime) -> bool:
    """Whether somebody may still wait for the answer to a question of that moment."""
    return at <= _code_expiry(payment) + scaled(URGENT_FOR)


def plan_times(created_at: datetime, expires_at: datetime, place: float) -> list[datetime]:
    """All at which the bank is asked, in order. A code that ends early counts from its end.

    place: of the code among those of its day, from 0 for the first to be asked about at the end of it to 1.
    """
    last_call = expires_at - scaled(timedelta(seconds=BEFORE_EXPIRY))
    early = [created_at + scaled(timedelta(seconds=seconds)) for seconds in AFTER_CREATION]
    end_of_day = _end_of_day(expires_at) + place * SPREAD
    late = [timedelta(seconds=seconds) for seconds in AFTER_EXPIRY] + [end_of_day - expires_at]
    return [
        *(instant for instant in early if instant < last_call),
        *([last_call] if last_call > created_at else []),
        *sorted(expires_at + scaled(wait) for wait in late),
    ]


def next_after(at: datetime, plan: list[datetime]) -> datetime | None:
    """The first instant of the plan after `at`: what was missed before is one question. None: it is over."""
    return next((instant for instant in plan if instant > at), None)


def retry_at(at: datetime, plan: list[datetime]) -> datetime | None:
    """When to repeat a question that was not answered at `at`; None: never again."""
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


def _code_expiry(payment: Payment) -> datetime:
    if payment.expires_at is None:
        raise ValueError(f"{payment.id} has no code")
    return payment.expires_at


def _end_of_day(at: datetime) -> datetime:
    day = at.astimezone(BANGKOK).date()
    return datetime.combine(day + timedelta(days=1), time(), BANGKOK) + AFTER_MIDNIGHT
