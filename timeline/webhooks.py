"""The merchant is told by webhooks: every attempt, who asked for another one, what is kept or dropped."""

from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Greatest

from core.clock import iso
from timeline.entries import CLOCK, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from webhooks.models import (
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    DeliveryTrigger,
    DisabledReason,
    EndpointAction,
    EndpointActionType,
    EndpointStatus,
)
from webhooks.redelivery import UNFINISHED_STATES

DISABLED_TEXT = {
    DisabledReason.MERCHANT: "its merchant disabled the webhook",
    DisabledReason.GONE: "the webhook answered 410 Gone",
    DisabledReason.FAILING: "the webhook had failed for days",
    DisabledReason.STAFF: "staff disabled the webhook",
}


def resends(context: PaymentContext) -> EntrySource:
    """Somebody wants it to be told again, by a resend or a replay; of several replays the last is known."""
    return EntrySource(_deliveries(context).filter(requested_at__isnull=False), "requested_at", _resend_entry)


def held(context: PaymentContext) -> EntrySource:
    """Kept for a replay, since it happened or since the webhook was disabled later."""
    # What a worker is about to hold is held: it will not be sent.
    silent = Q(endpoint__status=EndpointStatus.DISABLED, endpoint__deleted_at=None)
    kept = Q(state=DeliveryState.HELD) | silent & Q(state=DeliveryState.PENDING, manual_number=0)
    rows = _deliveries(context).filter(kept).annotate(begun_at=Greatest("created_at", "requested_at"))
    disabled = _disabled().values
    known = rows.annotate(
        held_at=Greatest("begun_at", Subquery(disabled("created_at")[:1])),
        reason=Subquery(disabled("detail")[:1]),
        disabled_by=Subquery(disabled("actor")[:1]),
    )
    return EntrySource(_with_actor(known, "held_at"), "held_at", _held_entry)


def attempts(context: PaymentContext) -> EntrySource:
    """Of a delivery by the schedule the clock is the actor, by a task; else whoever asked for it."""
    attempts = DeliveryAttempt.objects.filter(delivery__event__subject_id__in=_subject_ids(context))
    later = DeliveryAttempt.objects.filter(delivery=OuterRef("delivery"), pk__gt=OuterRef("pk"))
    rows = attempts.select_related("delivery__event").annotate(is_last=~Exists(later))
    return EntrySource(rows.defer("excerpt", "delivery__event__body"), "started_at", _attempt_entry)


def dropped(context: PaymentContext) -> EntrySource:
    """Never sent, or not any more: the webhook was deleted, or disabled before an extra attempt."""
    ended = _deliveries(context).filter(state=DeliveryState.FAILED)
    rows = ended.filter(
        Q(endpoint__deleted_at__lte=F("finished_at")) | Q(manual_number__gt=0, attempt_count=0)
    )
    return EntrySource(_with_actor(rows, "finished_at"), "finished_at", _dropped_entry)


def _subject_ids(context: PaymentContext) -> list[str]:
    return [context.payment.pk, *context.refund_ids]


def _deliveries(context: PaymentContext) -> QuerySet[Any]:
    events = Delivery.objects.filter(event__subject_id__in=_subject_ids(context))
    rows: QuerySet[Any] = events.select_related("event", "endpoint").defer("event__body")
    return rows


def _disabled() -> QuerySet[EndpointAction]:
    """Of a delivery's endpoint: the first that was not over before the delivery began."""
    events = EndpointAction.objects.filter(endpoint=OuterRef("endpoint"))
    over = events.filter(
        type=EndpointActionType.ENABLED, pk__gt=OuterRef("pk"), created_at__lte=OuterRef(OuterRef("begun_at"))
    )
    return events.filter(~Exists(over), type=EndpointActionType.DISABLED).order_by("pk")


def _with_actor(rows: QuerySet[Any], at: str) -> QuerySet[Any]:
    """By whoever disabled or deleted the webhook, if that was the moment; else nobody did it then."""
    resolutions = EndpointAction.objects.filter(
        endpoint=OuterRef("endpoint"), type__in=[EndpointActionType.DISABLED, EndpointActionType.DELETED]
    )
    action = resolutions.filter(created_at=OuterRef(at)).order_by("-pk")
    caused_by, request_id = (Subquery(action.values(name)[:1]) for name in ("actor", "request_id"))
    known: QuerySet[Any] = rows.annotate(caused_by=caused_by, caused_request_id=request_id)
    return known


def _actor_and_request(delivery: Any) -> tuple[str, str]:
    """The clock where nobody did it; empty where somebody did, and it was not kept who."""
    return CLOCK if delivery.caused_by is None else delivery.caused_by, delivery.caused_request_id or ""


def _resend_entry(delivery: Any) -> TimelineEntry:
    summary, details = f"{delivery.event.type} will be resent.", _delivery_details(delivery)
    return TimelineEntry(
        delivery.requested_at, TimelineEntryType.RESEND, summary, delivery.actor, delivery.request_id, details
    )


def _held_entry(delivery: Any) -> TimelineEntry:
    reason = delivery.reason or delivery.endpoint.disabled_reason
    reason_text = DISABLED_TEXT.get(reason, "the webhook is disabled")
    summary = f"{delivery.event.type} is held for a replay: {reason_text}."
    details = {**_delivery_details(delivery), "reason": reason}
    internal = {"disabled_by": delivery.disabled_by or ""}
    return TimelineEntry(
        delivery.held_at, TimelineEntryType.HELD, summary, *_actor_and_request(delivery), details, internal
    )


def _attempt_entry(attempt: Any) -> TimelineEntry:
    delivery = attempt.delivery
    details = {
        **_delivery_details(delivery),
        "number": attempt.number,
        "http_status": attempt.status,
        "duration_ms": attempt.duration_ms,
        "error": attempt.error or None,
        "next_attempt_at": iso(delivery.due_at) if _will_retry(attempt) else None,
    }
    is_manual = attempt.trigger == DeliveryTrigger.MANUAL
    by_schedule = (CLOCK, attempt.request_id)
    actor, request_id = (delivery.actor, delivery.request_id) if is_manual else by_schedule
    return TimelineEntry(
        attempt.started_at, TimelineEntryType.ATTEMPT, _summary(attempt), actor, request_id, details
    )


def _dropped_entry(delivery: Any) -> TimelineEntry:
    deleted_at = delivery.endpoint.deleted_at
    reason = "deleted" if deleted_at and deleted_at <= delivery.finished_at else "disabled"
    summary = f"{delivery.event.type} is not sent: the webhook was {reason}."
    details = {**_delivery_details(delivery), "reason": reason}
    return TimelineEntry(
        delivery.finished_at, TimelineEntryType.DROPPED, summary, *_actor_and_request(delivery), details
    )


def _delivery_details(delivery: Delivery) -> dict[str, Any]:
    return {
        "event": delivery.event.type,
        "event_id": delivery.event_id,
        "webhook_id": delivery.endpoint_id,
        "delivery_id": delivery.id,
    }


def _will_retry(attempt: Any) -> bool:
    return bool(attempt.is_last) and attempt.delivery.state in UNFINISHED_STATES


def _summary(attempt: Any) -> str:
    event = attempt.delivery.event.type
    if attempt.status is not None:
        return f"{event} is sent: {attempt.status} in {attempt.duration_ms} ms."
    return f"{event} is sent: {attempt.error}."
