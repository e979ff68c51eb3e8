"""What the sandbox bank says when it is asked: entries of its books, as far as they have come."""

from datetime import date, datetime, time

from django.db.models import QuerySet

from core.clock import BANGKOK
from sandbox.models import SandboxEntry, SandboxEntryType

MAX_ENTRIES = 100


def of_code(
    *, biller_id: str, reference1: str, since: datetime, until: datetime, now: datetime
) -> QuerySet[SandboxEntry]:
    """The entries about one code with a bank's time between the two, both included; the oldest hundred.

    One that was told before its time counts from then on, or the bank would deny what it has told.
    """
    found = _booked(now).filter(payment__biller_id=biller_id, payment__reference1=reference1)
    return found.filter(booked_at__lte=until, occurred_at__gte=since)[:MAX_ENTRIES]


def of_slip(*, sending_bank: str, reference: str, now: datetime) -> QuerySet[SandboxEntry]:
    """The entries about the transfer that a payer's slip names; what was declined has no slip."""
    payer = {"payment__payer_bank_code": sending_bank, "payment__slip_reference": reference}
    return _booked(now).filter(**payer).exclude(type=SandboxEntryType.DECLINE)


def of_day(*, biller_id: str, day: date, now: datetime) -> QuerySet[SandboxEntry]:
    """The money that came to a biller or went back on a day in Bangkok."""
    day_range = datetime.combine(day, time.min, BANGKOK), datetime.combine(day, time.max, BANGKOK)
    found = _booked(now).filter(payment__biller_id=biller_id, occurred_at__range=day_range)
    return found.exclude(type=SandboxEntryType.DECLINE)


def _booked(now: datetime) -> QuerySet[SandboxEntry]:
    return (
        SandboxEntry.objects.select_related("payment")
        .filter(booked_at__lte=now)
        .order_by("occurred_at", "id")
    )
