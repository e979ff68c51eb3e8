"""The merchant is told by webhooks: every attempt, who asked for another one, what is kept or dropped."""

from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Greatest

from console.timeline.entries import CLOCK, Entry, Moment, Subject, Type
from core.clock import iso
from webhooks.models import (
    Act,
    Attempt,
    Delivery,
    DeliveryState,
    DisabledReason,
    EndpointAct,
    EndpointStatus,
    Trigger,
)
from webhooks.replays import ON_ITS_WAY

WHY_HELD = {
    DisabledReason.MERCHANT: "its merchant disabled the webhook",
    DisabledReason.GONE: "the webhook was disabled when it answered that it is gone",
    DisabledReason.FAILING: "the webhook was disabled after it had failed for days",
    DisabledReason.STAFF: "staff disabled the webhook",
}


def asked(subject: Subject) -> Moment:
    """Somebody wants it to be told again, by a resend or a replay; of several replays the last is known."""
    return Moment(_deliveries(subject).filter(asked_at__isnull=False), "asked_at", _asked)


def held(subject: Subject) -> Moment:
    """Kept for a replay, since it happened or since the webhook was disabled later."""
    # What a worker is about to hold is held: it will not be sent.
    silent = Q(endpoint__status=EndpointStatus.DISABLED, endpoint__deleted_at=None)
    kept = Q(state=DeliveryState.HELD) | silent & Q(state=DeliveryState.PENDING, resend=0)
    rows = _deliveries(subject).filter(kept).annotate(begun_at=Greatest("created_at", "asked_at"))
    disabled = _disabled().values
    known = rows.annotate(
        held_at=Greatest("begun_at", Subquery(disabled("at")[:1])),
        reason=Subquery(disabled("detail")[:1]),
        disabled_by=Subquery(disabled("actor")[:1]),
    )
    return Moment(_with_cause(known, "held_at"), "held_at", _held)


def attempts(subject: Subject) -> Moment:
    """Of a delivery by the schedule the clock is the actor, by a task; else whoever asked for it."""
    made = Attempt.objects.filter(delivery__event__subject_id__in=_about(subject))
    later = Attempt.objects.filter(delivery=OuterRef("delivery"), pk__gt=OuterRef("pk"))
    rows = made.select_related("delivery__event").annotate(is_last=~Exists(later))
    return Moment(rows.defer("excerpt", "delivery__event__body"), "started_at", _tried)


def dropped(subject: Subject) -> Moment:
    """Never sent, or not any more: the webhook was deleted, or disabled before an extra attempt."""
    ended = _deliveries(subject).filter(state=DeliveryState.FAILED)
    rows = ended.filter(Q(endpoint__deleted_at__lte=F("finished_at")) | Q(resend__gt=0, attempts=0))
    return Moment(_with_cause(rows, "finished_at"), "finished_at", _dropped)


def _about(subject: Subject) -> list[str]:
    return [subject.payment.pk, *subject.refund_ids]


def _deliveries(subject: Subject) -> QuerySet[Any]:
    of = Delivery.objects.filter(event__subject_id__in=_about(subject))
    rows: QuerySet[Any] = of.select_related("event", "endpoint").defer("event__body")
    return rows


def _disabled() -> QuerySet[EndpointAct]:
    """Of a delivery's endpoint: the first that was not over before the delivery began."""
    of = EndpointAct.objects.filter(endpoint=OuterRef("endpoint"))
    over = of.filter(act=Act.ENABLED, pk__gt=OuterRef("pk"), at__lte=OuterRef(OuterRef("begun_at")))
    return of.filter(~Exists(over), act=Act.DISABLED).order_by("pk")


def _with_cause(rows: QuerySet[Any], at: str) -> QuerySet[Any]:
    """By whoever disabled or deleted the webhook, if that was the moment; else nobody did it then."""
    acts = EndpointAct.objects.filter(endpoint=OuterRef("endpoint"), act__in=[Act.DISABLED, Act.DELETED])
    act = acts.filter(at=OuterRef(at)).order_by("-pk")
    caused_by, request_id = (Subquery(act.values(name)[:1]) for name in ("caused_by", "request_id"))
    known: QuerySet[Any] = rows.annotate(caused_by=caused_by, caused_request_id=request_id)
    return known


def _cause(delivery: Any) -> tuple[str, str]:
    """The clock where nobody did it; empty where somebody did, and it was not kept who."""
    return CLOCK if delivery.caused_by is None else delivery.caused_by, delivery.caused_request_id or ""


def _asked(delivery: Any) -> Entry:
    summary, details = f"{delivery.event.type} is to be sent again.", _which(delivery)
    return Entry(
        delivery.asked_at, Type.RESEND, summary, delivery.asked_by, delivery.asked_request_id, details
    )


def _held(delivery: Any) -> Entry:
    reason = delivery.reason or delivery.endpoint.disabled_reason
    why = WHY_HELD.get(reason, "the webhook is disabled")
    summary = f"{delivery.event.type} is kept for a replay: {why}."
    details = {**_which(delivery), "reason": reason}
    internal = {"disabled_by": delivery.disabled_by or ""}
    return Entry(delivery.held_at, Type.HELD, summary, *_cause(delivery), details, internal)


def _tried(attempt: Any) -> Entry:
    delivery = attempt.delivery
    details = {
        **_which(delivery),
        "number": attempt.number,
        "http_status": attempt.status,
        "duration_ms": attempt.duration_ms,
        "error": attempt.error or None,
        "next_attempt_at": iso(delivery.due_at) if _is_tried_again(attempt) else None,
    }
    is_manual = attempt.trigger == Trigger.MANUAL
    by_schedule = (CLOCK, attempt.request_id)
    actor, request_id = (delivery.asked_by, delivery.asked_request_id) if is_manual else by_schedule
    return Entry(attempt.started_at, Type.ATTEMPT, _summary(attempt), actor, request_id, details)


def _dropped(delivery: Any) -> Entry:
    deleted_at = delivery.endpoint.deleted_at
    reason = "deleted" if deleted_at and deleted_at <= delivery.finished_at else "disabled"
    summary = f"{delivery.event.type} is not sent: the webhook was {reason}."
    details = {**_which(delivery), "reason": reason}
    return Entry(delivery.finished_at, Type.DROPPED, summary, *_cause(delivery), details)


def _which(delivery: Delivery) -> dict[str, Any]:
    return {
        "event": delivery.event.type,
        "event_id": delivery.event_id,
        "webhook_id": delivery.endpoint_id,
        "delivery_id": delivery.id,
    }


def _is_tried_again(attempt: Any) -> bool:
    return bool(attempt.is_last) and attempt.delivery.state in ON_ITS_WAY


def _summary(attempt: Any) -> str:
    event = attempt.delivery.event.type
    if attempt.status is not None:
        return f"{event} is sent: {attempt.status} in {attempt.duration_ms} ms."
    return f"{event} is sent: {attempt.error}."
