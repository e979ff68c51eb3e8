"""Webhook deliveries: attempts, redeliveries, and deliveries that are held or dropped."""

from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Greatest
from django.utils.translation import gettext, gettext_noop

from core.clock import iso
from timeline import explanations
from timeline.entries import CLOCK, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from webhooks.models import (
    Delivery,
    DeliveryAttempt,
    DeliveryLease,
    DeliveryState,
    DeliveryTrigger,
    DisabledReason,
    EndpointAction,
    EndpointActionType,
    EndpointStatus,
)


def sources(context: PaymentContext) -> list[EntrySource]:
    subjects = [context.payment.pk, *context.refund_ids, *context.bank_transaction_ids]
    deliveries = Delivery.objects.filter(event__subject_id__in=subjects)
    deliveries = deliveries.select_related("event", "endpoint").defer("event__packed_body")
    # Of several replays of one delivery only the last is stored.
    resent = deliveries.filter(requested_at__isnull=False)
    later = DeliveryAttempt.objects.filter(delivery=OuterRef("delivery"), pk__gt=OuterRef("pk"))
    attempts = DeliveryAttempt.objects.filter(delivery__event__subject_id__in=subjects)
    attempts = attempts.select_related("delivery__event").annotate(is_last=~Exists(later))
    # The webhook was deleted, or disabled before a redelivery.
    is_dropped = Q(endpoint__deleted_at__lte=F("finished_at")) | Q(manual_number__gt=0, attempt_count=0)
    dropped = _with_actor(deliveries.filter(is_dropped, state=DeliveryState.FAILED), "finished_at")
    return [
        EntrySource(resent, "requested_at", _resent),
        EntrySource(attempts.defer("excerpt", "delivery__event__packed_body"), "started_at", _attempt),
        EntrySource(_with_actor(_held_of(deliveries), "held_at"), "held_at", _held),
        EntrySource(dropped, "finished_at", _dropped),
    ]


def _held_of(deliveries: QuerySet[Any]) -> Any:
    """Deliveries held for a replay, from the time when they began or the webhook was disabled.

    The webhook was disabled by the first disabling that was still in force when the delivery began.
    """
    actions = EndpointAction.objects.filter(endpoint=OuterRef("endpoint"))
    enabled_again = actions.filter(
        type=EndpointActionType.ENABLED, pk__gt=OuterRef("pk"), created_at__lte=OuterRef(OuterRef("begun_at"))
    )
    disabled = actions.filter(~Exists(enabled_again), type=EndpointActionType.DISABLED).order_by("pk").values
    # A pending delivery of a disabled endpoint counts as held: a worker will hold it and not send it.
    is_disabled = Q(endpoint__status=EndpointStatus.DISABLED, endpoint__deleted_at=None)
    is_held = Q(state=DeliveryState.HELD) | is_disabled & Q(state=DeliveryState.PENDING, manual_number=0)
    posted = DeliveryLease.objects.filter(endpoint_id=OuterRef("endpoint"), delivery_id=OuterRef("pk"))
    rows = deliveries.filter(is_held, ~Exists(posted)).annotate(
        begun_at=Greatest("created_at", "requested_at")
    )
    return rows.annotate(
        held_at=Greatest("begun_at", Subquery(disabled("created_at")[:1])),
        reason=Subquery(disabled("detail")[:1]),
        disabled_by=Subquery(disabled("actor")[:1]),
    )


def _with_actor(rows: QuerySet[Any], at: str) -> Any:
    """Annotate who disabled or deleted the webhook at the instant `at`: the clock if no action did it."""
    action = (
        EndpointAction.objects.filter(
            endpoint=OuterRef("endpoint"),
            type__in=[EndpointActionType.DISABLED, EndpointActionType.DELETED],
            created_at=OuterRef(at),
        )
        .order_by("-pk")
        .values
    )
    return rows.annotate(
        action_actor=Coalesce(Subquery(action("actor")[:1]), Value(CLOCK)),
        action_request_id=Subquery(action("request_id")[:1]),
    )


def _resent(delivery: Any) -> TimelineEntry:
    details = _delivery_details(delivery)
    summary = explanations.RESENT % details
    return TimelineEntry.of(delivery, TimelineEntryType.RESEND, summary, details)


def _held(delivery: Any) -> TimelineEntry:
    reason = delivery.reason or delivery.endpoint.disabled_reason
    label = DisabledReason(reason).label if reason else gettext_noop("The webhook is disabled")
    words = {"event": delivery.event.type, "reason": gettext(label).lower()}
    summary = explanations.HELD % words
    details = _delivery_details(delivery) | {"reason": reason}
    more: Any = {"by": "action_", "internal": {"disabled_by": delivery.disabled_by or ""}}
    return TimelineEntry.of(delivery, TimelineEntryType.HELD, summary, details, **more)


def _attempt(attempt: Any) -> TimelineEntry:
    """The actor of a scheduled attempt is the clock; of a manual one, who asked for it."""
    delivery = attempt.delivery
    will_retry = attempt.is_last and delivery.state == DeliveryState.PENDING
    details = {
        **_delivery_details(delivery),
        "number": attempt.number,
        "http_status": attempt.status,
        "duration_ms": attempt.duration_ms,
        "error": attempt.error or None,
        "next_attempt_at": iso(delivery.due_at) if will_retry else None,
    }
    caused_by = {"actor": CLOCK}
    if attempt.trigger == DeliveryTrigger.MANUAL:
        caused_by = {"actor": delivery.actor, "request_id": delivery.request_id}
    summary = explanations.NOT_ANSWERED if attempt.status is None else explanations.ANSWERED
    return TimelineEntry.of(attempt, TimelineEntryType.ATTEMPT, summary % details, details, **caused_by)


def _dropped(delivery: Any) -> TimelineEntry:
    deleted_at = delivery.endpoint.deleted_at
    reason = "deleted" if deleted_at and deleted_at <= delivery.finished_at else "disabled"
    details = _delivery_details(delivery) | {"reason": reason}
    summary = explanations.DROPPED % details
    return TimelineEntry.of(delivery, TimelineEntryType.DROPPED, summary, details, by="action_")


def _delivery_details(delivery: Delivery) -> dict[str, Any]:
    endpoint = "webhook_id" if delivery.endpoint_id.startswith("wh_") else "destination_id"
    event = {"event": delivery.event.type, "event_id": delivery.event_id}
    return event | {endpoint: delivery.endpoint_id, "delivery_id": delivery.id}
