"""Acts as they are written down: who, when and why, and in which round.

What waits is ended once in a round. A new round begins when somebody opens again what was ended by mistake.
"""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from core import request_context
from reconciliation.models import BankNotification, NotificationResult, Resolution, ResolutionType
from reconciliation.notifications import intake
from transfers.models import TransferContradiction


class ActionNotAllowed(Exception):
    """The act cannot be done; the text says why, for staff."""


class AlreadyResolved(ActionNotAllowed):
    """Somebody has decided already; the text says who, what and when. Nothing changed."""


def draft(
    subject_id: str,
    resolution_type: ResolutionType,
    actor: str,
    note: str,
    now: datetime,
    payment_id: str | None = None,
) -> Resolution:
    """An act that the caller saves. The caller holds the subject's lock."""
    reopen_count = Resolution.objects.filter(subject_id=subject_id, type=ResolutionType.REOPENED).count()
    return Resolution(
        subject_id=subject_id,
        type=resolution_type,
        reopen_count=reopen_count + (resolution_type == ResolutionType.REOPENED),
        actor=actor,
        note=note,
        payment_id=payment_id,
        request_id=request_context.current().request_id,
        created_at=now,
    )


def save(resolution: Resolution) -> Resolution:
    """Raises AlreadyResolved where the round is ended, or begun, already."""
    try:
        with transaction.atomic():
            resolution.save(force_insert=True)
    except IntegrityError:
        raise already_resolved(resolution.subject_id) from None
    return resolution


def lock_message(subject_id: str) -> BankNotification | TransferContradiction | None:
    """What a bank said, under its lock, if it waits for staff or has waited."""
    if subject_id.startswith("ctr_"):
        return lock_contradiction(subject_id)
    found = BankNotification.objects.filter(
        pk=subject_id, result__in=[*intake.NEEDS_STAFF, NotificationResult.UNSIGNED]
    )
    return found.select_for_update(no_key=True).first()


def lock_contradiction(subject_id: str) -> TransferContradiction | None:
    """Under its lock."""
    found: TransferContradiction | None = (
        TransferContradiction.objects.filter(pk=subject_id).select_for_update(no_key=True).first()
    )
    return found


def latest(subject_id: str) -> Resolution | None:
    return Resolution.objects.filter(subject_id=subject_id).order_by("id").last()


def already_resolved(subject_id: str) -> AlreadyResolved:
    resolution = Resolution.objects.filter(subject_id=subject_id).latest("id")
    decided_at = timezone.localtime(resolution.created_at)
    return AlreadyResolved(
        f"{resolution.actor} has already resolved this: {resolution.get_type_display().lower()}, "
        f"{decided_at:%d %b %Y %H:%M}."
    )
