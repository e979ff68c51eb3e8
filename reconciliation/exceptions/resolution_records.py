"""Resolutions as rows: who decided what, when and why.

A subject is resolved once; after it was reopened, once again. `reopen_count` tells these resolutions apart.
"""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _

from audit_trail import confirmation
from audit_trail.acts import Act, ActRefused
from audit_trail.recording import recorded
from core import clock, request_context
from reconciliation.matching import intake
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    NotificationResult,
    Resolution,
    ResolutionType,
    listing,
)
from refunds.models import Refund
from transfers.models import TransferContradiction

# What an exception is about, by the prefix of its id.
SUBJECTS: dict[str, type[Model]] = {
    "btx": BankTransaction,
    "ntf": BankNotification,
    "ctr": TransferContradiction,
    "ref": Refund,
}
P = ParamSpec("P")
R = TypeVar("R")
DISMISSIBLE_RESULTS = [*intake.NEEDS_STAFF, NotificationResult.UNSIGNED]
# Staff confirm who they are before these: money leaves, is lost, or becomes available to leave.
CONFIRMED_TYPES = {
    *(ResolutionType.SENT_BACK, ResolutionType.SENT_BACK_BY_HAND, ResolutionType.EXCESS_SENT_BACK),
    *(ResolutionType.WRITTEN_OFF, ResolutionType.KEPT),
    *(ResolutionType.BOOKED_RETURNED, ResolutionType.CONFIRMED),
}


class AlreadyResolved(ActRefused):
    """Somebody has decided already; the text says who, what and when. Nothing changed."""


def decision(type: ResolutionType) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Run a decision of staff about a subject in one transaction with its audit record.

    The service takes the id of the subject first, and its reason as `note`.
    """

    def decorate(service: Callable[P, R]) -> Callable[P, R]:
        @wraps(service)
        def decide(*args: P.args, **kwargs: P.kwargs) -> R:
            if type in CONFIRMED_TYPES:
                confirmation.require()
            subject_id = str(args[0])
            model = SUBJECTS.get(subject_id.partition("_")[0])
            # None for an unknown id, which the service refuses.
            subject = model._base_manager.filter(pk=subject_id).first() if model else None
            with recorded(Act.EXCEPTION_RESOLVED, subject, reason=str(kwargs["note"])) as recording:
                recording.details["decision"] = type.value
                return service(*args, **kwargs)

        return decide

    return decorate


def draft(
    subject_id: str, type: ResolutionType, note: str, now: datetime, payment_id: str | None = None
) -> Resolution:
    """A resolution by the current actor, not saved. The caller holds the subject's lock."""
    reopen_count = Resolution.objects.filter(subject_id=subject_id, type=ResolutionType.REOPENED).count()
    return Resolution(
        subject_id=subject_id,
        type=type,
        reopen_count=reopen_count + (type == ResolutionType.REOPENED),
        note=note,
        payment_id=payment_id,
        created_at=now,
        **request_context.columns(),
    )


def save(resolution: Resolution) -> Resolution:
    """Raises AlreadyResolved if another resolution was first."""
    try:
        with transaction.atomic():
            resolution.save(force_insert=True)
    except IntegrityError:
        raise already_resolved(resolution.subject_id) from None
    return resolution


def record(
    subject_id: str, type: ResolutionType, note: str, now: datetime, payment_id: str | None = None
) -> Resolution:
    """Draft and save, and close the exception. The caller holds its lock. Raises AlreadyResolved."""
    if type != ResolutionType.REOPENED:
        listing.close(subject_id)
    return save(draft(subject_id, type, note, now, payment_id))


def lock_message(subject_id: str) -> BankNotification | TransferContradiction | None:
    """A notification or contradiction that is or was an exception, under its lock."""
    found: QuerySet[Any] = BankNotification.objects.filter(pk=subject_id, result__in=DISMISSIBLE_RESULTS)
    if subject_id.startswith("ctr_"):
        found = TransferContradiction.objects.filter(pk=subject_id)
    return found.select_for_update(no_key=True).first()


def already_resolved(subject_id: str) -> AlreadyResolved:
    resolution = Resolution.objects.filter(subject_id=subject_id).latest("id")
    words = {
        "person": request_context.display_name(resolution.actor),
        "decision": resolution.get_type_display().lower(),
        "at": clock.display(resolution.created_at),
    }
    return AlreadyResolved(_("%(person)s has already resolved this: %(decision)s, %(at)s.") % words)
