"""Every attempt to tell the merchant, by the webhooks that were to be told."""

from typing import Any

from django.db.models import Exists, OuterRef

from console.timeline.entries import CLOCK, Entry, Moment, Subject, Type
from core.clock import iso
from webhooks.models import Attempt, Trigger
from webhooks.replays import ON_ITS_WAY


def attempts(subject: Subject) -> Moment:
    """Of a delivery by the schedule the clock is the actor; who asked for another one is not known here."""
    about = [subject.payment.pk, *subject.refund_ids]
    made = Attempt.objects.filter(delivery__event__subject_id__in=about)
    later = Attempt.objects.filter(delivery=OuterRef("delivery"), pk__gt=OuterRef("pk"))
    rows = made.select_related("delivery__event").annotate(is_last=~Exists(later))
    return Moment(rows.defer("excerpt", "delivery__event__body"), "started_at", _told)


def _told(attempt: Any) -> Entry:
    delivery = attempt.delivery
    details = {
        "event": delivery.event.type,
        "event_id": delivery.event_id,
        "webhook_id": delivery.endpoint_id,
        "delivery_id": delivery.id,
        "number": attempt.number,
        "http_status": attempt.status,
        "duration_ms": attempt.duration_ms,
        "error": attempt.error or None,
        "next_attempt_at": iso(delivery.due_at) if _is_tried_again(attempt) else None,
    }
    actor = CLOCK if attempt.trigger == Trigger.AUTO else ""
    return Entry(attempt.started_at, Type.ATTEMPT, _summary(attempt), actor, details=details)


def _is_tried_again(attempt: Any) -> bool:
    return bool(attempt.is_last) and attempt.delivery.state in ON_ITS_WAY


def _summary(attempt: Any) -> str:
    event = attempt.delivery.event.type
    if attempt.status is not None:
        return f"{event} is sent: {attempt.status} in {attempt.duration_ms} ms."
    if attempt.error:
        return f"{event} is sent: {attempt.error}."
    return f"{event} is being sent."
