"""Acts as they are written down: who, when and why, and in which round.

What waits is ended once in a round. A new round begins when somebody opens again what was ended by mistake.
"""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from core import origin
from receipts import inbox
from receipts.models import Act, Deed, Notice, Verdict
from transfers.models import Contradiction


class NotPossible(Exception):
    """The act cannot be done; the text says why, for staff."""


class AlreadyDone(NotPossible):
    """Somebody has decided already; the text says who, what and when. Nothing changed."""


def draft(
    subject_id: str, deed: Deed, by: str, why: str, now: datetime, payment_id: str | None = None
) -> Act:
    """An act that the caller saves. The caller holds the subject's lock."""
    opened = Act.objects.filter(subject_id=subject_id, deed=Deed.REOPENED).count()
    return Act(
        subject_id=subject_id,
        deed=deed,
        round=opened + (deed == Deed.REOPENED),
        by=by,
        why=why,
        payment_id=payment_id,
        request_id=origin.current().request_id,
        at=now,
    )


def write_down(act: Act) -> Act:
    """Raises AlreadyDone where the round is ended, or begun, already."""
    try:
        with transaction.atomic():
            act.save(force_insert=True)
    except IntegrityError:
        raise already(act.subject_id) from None
    return act


def message(subject_id: str) -> Notice | Contradiction | None:
    """What a bank said, under its lock, if it waits for staff or has waited."""
    if subject_id.startswith("ctr_"):
        return contradiction(subject_id)
    waiting = Notice.objects.filter(pk=subject_id, verdict__in=[*inbox.FOR_STAFF, Verdict.UNSIGNED])
    return waiting.select_for_update(no_key=True).first()


def contradiction(subject_id: str) -> Contradiction | None:
    """Under its lock."""
    found: Contradiction | None = (
        Contradiction.objects.filter(pk=subject_id).select_for_update(no_key=True).first()
    )
    return found


def last(subject_id: str) -> Act | None:
    return Act.objects.filter(subject_id=subject_id).order_by("id").last()


def already(subject_id: str) -> AlreadyDone:
    act = Act.objects.filter(subject_id=subject_id).latest("id")
    at = timezone.localtime(act.at)
    return AlreadyDone(f"{act.by} decided already: {act.get_deed_display().lower()}, {at:%d %b %Y %H:%M}.")
